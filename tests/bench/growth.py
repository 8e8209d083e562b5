"""Seconds over size, both axes logarithmic, as one SVG picture."""
import collections
import math

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 820, 440, 64, 44, 52, 190
INK = ("#1f6fb2", "#c4501b", "#2a8a4a", "#7a4fb0", "#a8811a", "#b0326d", "#3a8f9e", "#5b6470", "#8a3b2e", "#4c6f1f")


def decades(values):
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def label(power, unit):
    return f"{10 ** power:g}{unit}" if -4 <= power <= 4 else f"10<tspan dy='-5' font-size='9'>{power}</tspan><tspan dy='5'>{unit}</tspan>"


def lines_of(rows):
    lines = collections.defaultdict(list)
    for _, row in rows:
        if row.seconds and row.seconds > 0:
            lines[row.of].append((row.count, row.seconds))
    return {of: sorted(points) for of, points in lines.items() if len({count for count, _ in points}) > 1}


def placed_labels(ends):
    """Heights of the labels, at least a line apart."""
    heights, last = {}, 0
    for height, of in sorted(ends):
        last = heights[of] = max(height, last + 14)
    return heights


def picture(rows):
    lines = lines_of(rows)
    xs, ys = decades([c for p in lines.values() for c, _ in p]), decades([s for p in lines.values() for _, s in p])

    def x(count):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(count) - xs[0]) / (xs[1] - xs[0])

    def y(seconds):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(seconds) - ys[0]) / (ys[1] - ys[0])

    drawn = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' font-size='12'>",
             f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
             f"<text x='{LEFT}' y='24' font-size='14'>How each step grows: CPU seconds over stages x micro-batches</text>"]
    for power in range(xs[0], xs[1] + 1):
        at = x(10 ** power)
        drawn.append(f"<path d='M{at:.1f} {TOP}V{HEIGHT - BOTTOM}' stroke='#ddd'/>"
                     f"<text x='{at:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle'>{label(power, '')}</text>")
    for power in range(ys[0], ys[1] + 1):
        at = y(10 ** power)
        drawn.append(f"<path d='M{LEFT} {at:.1f}H{WIDTH - RIGHT}' stroke='#ddd'/>"
                     f"<text x='{LEFT - 6}' y='{at + 4:.1f}' text-anchor='end'>{label(power, ' s')}</text>")
    heights = placed_labels([(y(points[-1][1]), of) for of, points in lines.items()])
    for ink, (of, points) in zip(INK * 3, lines.items()):
        drawn.append(f"<polyline points='{' '.join(f'{x(c):.1f},{y(s):.1f}' for c, s in points)}' fill='none' stroke='{ink}' stroke-width='2'/>")
        drawn += [f"<circle cx='{x(c):.1f}' cy='{y(s):.1f}' r='3' fill='{ink}'/>" for c, s in points]
        end, height = x(points[-1][0]), heights[of]
        drawn.append(f"<path d='M{end:.1f} {y(points[-1][1]):.1f}L{WIDTH - RIGHT + 8} {height:.1f}' stroke='{ink}' stroke-dasharray='1 3'/>"
                     f"<text x='{WIDTH - RIGHT + 12}' y='{height + 4:.1f}' fill='{ink}'>{of}</text>")
    return "\n".join([*drawn, "</svg>"]) + "\n"

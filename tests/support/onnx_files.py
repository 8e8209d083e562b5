#!/usr/bin/env python3
"""Writes small ONNX files: onnx_files.py FOLDER. Field numbers come from onnx.proto."""
import pathlib
import sys

FLOAT, INT64 = 1, 7


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def value(name, sizes, kind=FLOAT):
    shape = b"".join(text(1, number(1, s) if isinstance(s, int) else text(2, s)) for s in sizes)
    return text(1, name) + text(2, text(1, number(1, kind) + text(2, shape)))


def weights(name, sizes):
    return b"".join(number(1, s) for s in sizes) + number(2, FLOAT) + text(8, name) + number(14, 1)


def numbers(name, values):
    return number(1, len(values)) + number(2, INT64) + text(8, name) + b"".join(number(7, v) for v in values)


def attribute(name, of):
    if isinstance(of, list):
        return text(1, name) + b"".join(number(8, v) for v in of)
    return text(1, name) + (number(3, of) if isinstance(of, int) else text(4, of))


def node(kind, inputs, outputs, **attributes):
    return (b"".join(text(1, i) for i in inputs) + b"".join(text(2, o) for o in outputs) + text(3, outputs[0]) +
            text(4, kind) + b"".join(text(5, attribute(n, of)) for n, of in attributes.items()))


def model(inputs, initializers, nodes, outputs):
    graph = (b"".join(text(1, n) for n in nodes) + text(2, "net") + b"".join(text(5, i) for i in initializers) +
             b"".join(text(11, i) for i in inputs) + b"".join(text(12, text(1, o)) for o in outputs))
    return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17))


def mlp(activation="Relu"):
    return model([value("x", ["batch", 64])], [weights("w", [64, 256]), weights("v", [256, 10]), weights("b", [10])],
                 [node("MatMul", ["x", "w"], ["fc1"]), node(activation, ["fc1"], ["act"]),
                  node("Gemm", ["act", "v", "b"], ["fc2"]), node("Softmax", ["fc2"], ["p"])], ["p"])


def branches():
    """Words, one branch a product of parts of them, one through weights, side by side."""
    return model([value("ids", ["batch", "sequence"], INT64)],
                 [weights("table", [100, 32]), weights("w", [16, 16]), numbers("flat", [0, -1])],
                 [node("Gather", ["table", "ids"], ["words"]), node("Split", ["words"], ["a", "b"], axis=2),
                  node("Mul", ["a", "b"], ["gated"]), node("MatMul", ["b", "w"], ["mixed"]),
                  node("Concat", ["gated", "mixed"], ["both"], axis=-1), node("Reshape", ["both", "flat"], ["rows"]),
                  node("Transpose", ["table"], ["turned"], perm=[1, 0]), node("MatMul", ["both", "turned"], ["scores"])],
                 ["scores"])


def images():
    return model([value("image", [2, 3, 16, 16])], [weights("k", [8, 3, 3, 3]), weights("n", [8])],
                 [node("Conv", ["image", "k"], ["conv"], strides=[2, 2], pads=[1, 1, 1, 1]),
                  node("BatchNormalization", ["conv", "n", "n", "n", "n"], ["bn"]),
                  node("MaxPool", ["bn"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]), node("Shape", ["pool"], ["s"]),
                  node("Reshape", ["pool", "s"], ["same"]), node("ReduceMean", ["same"], ["mean"], axes=[2, 3])], ["mean"])


def pixels():
    """A convolution, and one that is transposed, which is only simulated, for an open number of samples."""
    return model([value("image", ["batch", 3, 8, 8])], [weights("k", [4, 3, 3, 3]), weights("u", [4, 3, 2, 2])],
                 [node("Conv", ["image", "k"], ["stem"]), node("ConvTranspose", ["stem", "u"], ["up"])], ["up"])


class Residual:
    """A small residual network (He et al., 2016) for images of 32 x 32, as exported for training: each convolution has a batch
    norm, whose running statistics are further outputs. Weights have no numbers, so the file is small."""

    def __init__(self, widths=(16, 32, 64), classes=10):
        self.initializers, self.nodes = [], []
        x = self.relu("stem.r", self.convolution("stem", "image", 3, widths[0], 3, 1))
        for i, width in enumerate(widths):
            x = self.block(f"b{i}", x, widths[max(i - 1, 0)], width, 1 if i == 0 else 2)
        self.initializers += [weights("fc.w", [classes, widths[-1]]), weights("fc.b", [classes])]
        self.nodes += [node("GlobalAveragePool", [x], ["mean"]), node("Flatten", ["mean"], ["flat"]),
                       node("Gemm", ["flat", "fc.w", "fc.b"], ["scores"], transB=1)]

    def convolution(self, name, x, inputs, outputs, kernel, stride):
        self.initializers.append(weights(name + ".w", [outputs, inputs, kernel, kernel]))
        self.nodes.append(node("Conv", [x, name + ".w"], [name], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4))
        parts = [f"{name}.{part}" for part in ("scale", "shift", "mean", "variance")]
        self.initializers += [weights(part, [outputs]) for part in parts]
        self.nodes.append(node("BatchNormalization", [name, *parts], [name + ".n", name + ".new_mean", name + ".new_variance"], training_mode=1))
        return name + ".n"

    def relu(self, name, x):
        self.nodes.append(node("Relu", [x], [name]))
        return name

    def block(self, name, x, inputs, outputs, stride):
        inner = self.relu(name + ".r1", self.convolution(name + ".c1", x, inputs, outputs, 3, stride))
        y = self.convolution(name + ".c2", inner, outputs, outputs, 3, 1)
        shortcut = x if inputs == outputs else self.convolution(name + ".down", x, inputs, outputs, 1, stride)
        self.nodes.append(node("Add", [y, shortcut], [name + ".sum"]))
        return self.relu(name + ".r2", name + ".sum")

    def model(self):
        return model([value("image", ["batch", 3, 32, 32])], self.initializers, self.nodes, ["scores"])


def attention():
    """A head of attention over rows of words, with a norm, a mask and the sum with its input."""
    return model([value("ids", ["batch", 6], INT64), value("mask", ["batch", 6], INT64)],
                 [weights("table", [50, 16]), weights("g", [16]), weights("n", [16]), weights("w", [16, 48]), weights("o", [16, 16]),
                  weights("s", [16, 50]), numbers("axis", [1])],
                 [node("Gather", ["table", "ids"], ["words"]), node("LayerNormalization", ["words", "g", "n"], ["normed"]),
                  node("MatMul", ["normed", "w"], ["qkv"]), node("Split", ["qkv"], ["q", "k", "v"], axis=-1),
                  node("Transpose", ["k"], ["turned"], perm=[0, 2, 1]), node("MatMul", ["q", "turned"], ["scores"]),
                  node("Cast", ["mask"], ["open"], to=FLOAT), node("Unsqueeze", ["open", "axis"], ["wide"]),
                  node("Add", ["scores", "wide"], ["masked"]), node("Softmax", ["masked"], ["p"], axis=-1),
                  node("MatMul", ["p", "v"], ["context"]), node("MatMul", ["context", "o"], ["out"]),
                  node("Add", ["out", "words"], ["sum"]), node("MatMul", ["sum", "s"], ["logits"])], ["logits"])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"mlp": mlp(), "branches": branches(), "images": images(), "unknown": mlp("Rellu"),
                          "pixels": pixels(), "attention": attention(), "residual": Residual().model()}.items():
        (folder / f"{name}.onnx").write_bytes(content)

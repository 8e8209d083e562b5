// A name that tries to become part of a page: markup, quotes, a template, marks that reverse the direction of writing, great length.

export const HOSTILE = `</script><img src=x onerror="document.title='taken'"><!-- '"\`\${1}{{data}} \u202egnihtyna\u202c \u05e9\u05dc\u05d5\u05dd ${'long'.repeat(60)}`;

/** The name as a string of YAML, which has no marks of direction as they are. */
export const HOSTILE_YAML = JSON.stringify(HOSTILE).replace(/[\u202a-\u202e]/g, c => '\\u' + c.charCodeAt(0).toString(16));

/** What the name did to the page that is open; empty if it is only text. */
export async function hostileProblems(browser) {
  return browser.evaluate(`(() => {
    const problems = [];
    if (document.title === 'taken') problems.push('its script ran');
    if (document.querySelector('img[src=x], iframe')) problems.push('its markup is part of the page');
    if (document.documentElement.scrollWidth > innerWidth) problems.push('it makes the page ' + document.documentElement.scrollWidth + ' pixels wide');
    if (/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText + document.title)) problems.push('it reverses the direction of writing');
    if (!document.body.innerText.includes('onerror=')) problems.push('it is not shown');
    return problems;
  })()`);
}

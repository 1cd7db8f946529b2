// Shows every <time> in the reader's own time zone, in the page's language.

const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })

showMoments(document)

/** @param {ParentNode} root */
export function showMoments(root) {
  for (const element of root.querySelectorAll('time')) element.textContent = format.format(new Date(element.dateTime))
}

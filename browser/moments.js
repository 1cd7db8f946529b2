// Shows every <time> in the reader's own time zone, in the page's language. One that is relative keeps its words, and has
// the date in its title.

const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })

showMoments(document)

/** @param {ParentNode} root */
export function showMoments(root) {
  for (const element of root.querySelectorAll('time')) {
    const date = format.format(new Date(element.dateTime))
    if (element.classList.contains('relative')) element.title = date
    else element.textContent = date
  }
}

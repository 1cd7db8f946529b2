// Shows every <time> in the reader's own time zone, in the page's language. One that is relative keeps its words, and has
// the date in its title.

const language = document.documentElement.lang
const format = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' })
const exactFormat = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })

showMoments(document)

/** @param {ParentNode} root */
export function showMoments(root) {
  for (const element of root.querySelectorAll('time')) {
    const { classList, dateTime } = element
    const date = (classList.contains('exact') ? exactFormat : format).format(new Date(dateTime))
    if (classList.contains('relative')) element.title = date
    else element.textContent = date
  }
}

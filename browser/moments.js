// Shows every <time> in the reader's own time zone, in the page's language.

const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })

for (const element of document.querySelectorAll('time')) {
  element.textContent = format.format(new Date(element.dateTime))
}

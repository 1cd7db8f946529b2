// Shows every <time> in the reader's own time zone.

const format = new Intl.DateTimeFormat('zh-CN', { dateStyle: 'medium', timeStyle: 'short' })

for (const element of document.querySelectorAll('time')) {
  element.textContent = format.format(new Date(element.dateTime))
}

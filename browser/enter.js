// Goes on to the host of an application after a sign-in, with the fragment of the page that was wanted.

const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector('a[data-enter]'))
if (link) location.replace(link.href + location.hash)

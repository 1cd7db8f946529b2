// Menus (`<details class="menu">`) open without scripts. With this one they close by Escape and by a click elsewhere, one is
// open at a time, and the focus returns to what opened it.

const OPEN = 'details.menu[open]'

document.addEventListener('click', event => {
  for (const menu of openMenus()) if (!isInside(menu, event.target)) menu.open = false
})

document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || event.defaultPrevented) return
  for (const menu of openMenus()) close(menu)
})

// The focus goes on to another part of the page: the menu is left.
document.addEventListener('focusin', event => {
  for (const menu of openMenus()) if (!isInside(menu, event.target)) menu.open = false
})

function openMenus() {
  return /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll(OPEN))
}

/** @param {HTMLDetailsElement} menu */
function close(menu) {
  const hadFocus = menu.contains(document.activeElement)
  menu.open = false
  if (hadFocus) menu.querySelector('summary')?.focus()
}

/**
 * @param {HTMLDetailsElement} menu
 * @param {EventTarget | null} target
 */
function isInside(menu, target) {
  return target instanceof Node && menu.contains(target)
}

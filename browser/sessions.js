// Says how many sessions are chosen. A user who is chosen as a whole includes their sessions.

const form = /** @type {HTMLFormElement | null} */ (document.getElementById('chosen'))
const hint = document.getElementById('chosen-hint')
if (form && hint) follow(form, hint)

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement} hint
 */
function follow(form, hint) {
  const initial = hint.textContent ?? ''
  const { many = '' } = hint.dataset
  const button = form.querySelector('button')
  // A browser that goes back to the page shows the boxes as they were.
  for (const box of boxes()) if (box.name === 'user' && box.checked) chooseSessions(box)
  update()
  document.addEventListener('change', event => {
    const box = event.target
    if (!(box instanceof HTMLInputElement) || box.form !== form) return
    if (box.name === 'user') chooseSessions(box)
    update()
  })

  function update() {
    const chosen = boxes().filter(box => box.checked && !box.disabled)
    hint.textContent = chosen.length === 0 ? initial : many.replace('#', String(chosen.length))
    if (button) button.disabled = chosen.length === 0
    form.classList.toggle('some', chosen.length > 0)
  }

  function boxes() {
    return /** @type {HTMLInputElement[]} */ ([...form.elements].filter(element => element instanceof HTMLInputElement))
  }
}

/**
 * Their boxes show that they are included, and are not sent.
 * @param {HTMLInputElement} user
 */
function chooseSessions(user) {
  for (const box of user.closest('tbody')?.querySelectorAll('input[name=session]') ?? [])
    if (box instanceof HTMLInputElement) {
      box.checked = user.checked
      box.disabled = user.checked
    }
}

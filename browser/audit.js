// The times that are typed in above the audit trail are meant in the reader's time zone.

const zone = /** @type {HTMLInputElement | null} */ (document.querySelector('#filters [name=zone]'))
if (zone) zone.value = String(new Date().getTimezoneOffset())

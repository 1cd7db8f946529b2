// Names and paths chosen by others, as our pages show them: nothing in them is invisible, endless, or changes the direction of
// the text. A template escapes them.
import type { UserInfo } from '../provider/user.ts'
import type { Phrase } from '../text/text.ts'
import type { Words } from './words.ts'

const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu
/** Anything that leaves a trace on the page; the last one is an empty braille cell. */
const VISIBLE = /[^\s\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u

/** How a page addresses a user: by the nickname, or if that has no visible character, by the username. */
export function displayName({ nickname, username }: Pick<UserInfo, 'nickname' | 'username'>): string {
  const name = nickname.replace(CONTROLS, '').trim()
  return VISIBLE.test(name) ? name : username
}

const MAX_SHOWN_PATH_LENGTH = 60
/** Without spaces: the author of a link must not write a sentence onto our page. */
const PLAIN_SEGMENT = /^[\p{L}\p{N}\p{M}._~@!$&'()*+,;=:-]*$/u

/** The path of an address without its query, with names as people write them. */
export function shortPath(address: string): string {
  const [path = ''] = address.split(/[?#]/, 1)
  const characters = [...path.split('/').map(shownSegment).join('/')]
  return characters.length > MAX_SHOWN_PATH_LENGTH
    ? `${characters.slice(0, MAX_SHOWN_PATH_LENGTH - 1).join('')}…`
    : characters.join('')
}

function shownSegment(segment: string): string {
  try {
    const text = decodeURIComponent(segment)
    return PLAIN_SEGMENT.test(text) ? text : segment
  } catch {
    return segment
  }
}

const MAX_SHOWN_CODE_LENGTH = 40

/** The code of an error that is not ours. Anyone can put any text into the address of the login page. */
export function shortCode(code: string): string {
  const characters = [...code.replace(CONTROLS, '')]
  return characters.length > MAX_SHOWN_CODE_LENGTH
    ? `${characters.slice(0, MAX_SHOWN_CODE_LENGTH).join('')}…`
    : characters.join('')
}

/** A name that is shown before a code, with a space; empty where both are the same. */
export function nameBefore(name: string, code: string): string {
  return name === '' || name.toLowerCase() === code.toLowerCase() ? '' : `${name} `
}

/** The name of one of several providers; its id, if it is no longer configured. */
export function providerLabel({ render }: Words, names: ReadonlyMap<string, Phrase> | undefined, id = ''): string {
  const name = names?.get(id)
  return name ? render(name) : id
}

/** A role that the operator has defined is shown by its name. */
export function roleName({ t }: Words, role: string): string {
  return role === 'developer' || role === 'common' ? t(`role.${role}`) : role
}

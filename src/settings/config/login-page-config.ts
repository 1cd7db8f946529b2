// What the operator adds to the login page: a sentence under the button, and links such as privacy and help.
import { z } from 'zod'

/** In one language for all, or by the language of the page. */
export type TextConfig = string | Readonly<Record<string, string>>

export interface LoginPageConfig {
  readonly note?: TextConfig | undefined
  readonly links?: readonly LinkConfig[] | undefined
}

export interface LinkConfig {
  readonly text: TextConfig
  readonly href: string
}

const line = (longest: number) =>
  z.string('expected text').regex(/\S/, 'expected text').max(longest, `expected at most ${longest} characters`)

const textShape = (longest: number) =>
  z.unknown().transform((given, context): TextConfig => {
    const shape = z.union([
      line(longest),
      z.record(z.string(), line(longest)).refine(texts => Object.keys(texts).length > 0),
    ])
    const { success, data } = shape.safeParse(given)
    if (success) return data
    context.addIssue(
      `expected text of at most ${longest} characters, or such a text by language: { 'zh-CN': '…', en: '…' }`,
    )
    return z.NEVER
  })

const MOST_LINKS = 8

export const loginPageShape = z.strictObject({
  note: textShape(300).optional(),
  links: z
    .array(
      z.strictObject({
        text: textShape(60),
        href: z
          .string()
          .max(1000)
          .refine(isHarmless, 'expected a path, or an address with https:, http:, mailto: or tel:'),
      }),
    )
    .max(MOST_LINKS, `expected at most ${MOST_LINKS} links`)
    .optional(),
})

function isHarmless(href: string): boolean {
  if (/^\/(?![/\\])/.test(href)) return !/[\\\s]/.test(href)
  return URL.canParse(href) && ['https:', 'http:', 'mailto:', 'tel:'].includes(new URL(href).protocol)
}

// ACCENT_COLOR: shades of it that are readable on our pages, in light and dark mode (WCAG 2.2: 4.5 for text, 3 for what is pressed).
import { z } from 'zod'
import type { Kind } from './kinds.ts'

export const color: Kind<string> = {
  type: 'string',
  check: z
    .string()
    .regex(/^#([\da-f]{3}|[\da-f]{6})$/i)
    .transform(text => (text.length === 4 ? text.replaceAll(/[\da-f]/gi, '$&$&') : text).toLowerCase()),
  expected: 'a colour as #rrggbb',
  example: '#1f5fbf',
}

export interface Shades {
  /** The button's colour. */
  readonly accent: string
  readonly accentStrong: string
  readonly onAccent: string
  readonly link: string
}

type Rgb = readonly [red: number, green: number, blue: number]

const BLACK: Rgb = [0, 0, 0]
const WHITE: Rgb = [255, 255, 255]
/** The surfaces of browser/menshen.css behind it (card, paper and the three tinted ones), and the colour mixed in for more contrast. */
const SCHEMES = {
  light: { backs: ['#ffffff', '#faf8f5', '#fdf0ee', '#fdf4e0', '#eff6f0'].map(rgbOf), away: BLACK },
  dark: { backs: ['#1f2227', '#16181c', '#33201f', '#30270f', '#1f2b22'].map(rgbOf), away: WHITE },
} as const

export type Scheme = keyof typeof SCHEMES

const PRESSED_CONTRAST = 3
const TEXT_CONTRAST = 4.5
/** The share that a hover mixes in. */
const STRONGER = 0.15

export function shadesOf(text: string, scheme: Scheme): Shades {
  const { backs, away } = SCHEMES[scheme]
  const accent = readable(rgbOf(text), backs, away, PRESSED_CONTRAST)
  // White or black is always readable on it.
  const onAccent = contrast(accent, WHITE) >= TEXT_CONTRAST ? WHITE : BLACK
  return {
    accent: hexOf(accent),
    accentStrong: hexOf(mix(accent, onAccent === WHITE ? BLACK : WHITE, STRONGER)),
    onAccent: hexOf(onAccent),
    link: hexOf(readable(accent, backs, away, TEXT_CONTRAST)),
  }
}

/** The nearest shade with enough contrast. */
function readable(color: Rgb, backs: readonly Rgb[], away: Rgb, wanted: number): Rgb {
  for (let part = 0; part < 1; part += 0.01) {
    const shade = mix(color, away, part)
    if (backs.every(back => contrast(shade, back) >= wanted)) return shade
  }
  return away
}

function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

function luminance(color: Rgb): number {
  const [red, green, blue] = color.map(linear) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function linear(channel: number): number {
  const share = channel / 255
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
}

function mix([red, green, blue]: Rgb, [toRed, toGreen, toBlue]: Rgb, part: number): Rgb {
  const between = (from: number, to: number) => Math.round(from + (to - from) * part)
  return [between(red, toRed), between(green, toGreen), between(blue, toBlue)]
}

function rgbOf(text: string): Rgb {
  const value = Number.parseInt(text.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

function hexOf([red, green, blue]: Rgb): string {
  return `#${((red << 16) | (green << 8) | blue).toString(16).padStart(6, '0')}`
}

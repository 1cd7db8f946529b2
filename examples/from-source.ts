// For examples in this repository: `menshen` and `menshen/…` are its source as it is, without a build. Elsewhere they are
// the installed package, and this file is not needed.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const ROOT = new URL('../', import.meta.url)
const { exports } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'))

registerHooks({
  resolve(specifier, context, next) {
    const built = exports[specifier.replace(/^menshen(?=$|\/)/, '.')]?.default
    if (!built || specifier.startsWith('.')) return next(specifier, context)
    const source = built.replace(/^\.\/dist\/(.*)\.js$/, './src/$1.ts')
    return { url: new URL(source, ROOT).href, shortCircuit: true }
  },
})

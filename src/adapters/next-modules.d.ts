// The parts of Next that the adapter uses. Its package is a third of a gigabyte, too much for everyone who installs this repository to
// work on it; test/long/next.long.ts compiles and runs the adapter with the real one.
declare module 'next/headers.js' {
  export function headers(): Promise<Headers>
}

declare module 'next/navigation.js' {
  export function notFound(): never
  export function redirect(path: string): never
}

declare module 'next/server.js' {
  export class NextResponse extends Response {
    static next(init?: { request: { headers: Headers } }): NextResponse
  }
}

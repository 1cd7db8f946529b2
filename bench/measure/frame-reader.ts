// The frames of an HTTP/2 connection, as they arrive.

import { FRAME, frame, number } from '../../test/kit/http2-frames.ts'

const FIRST_WINDOW = 65_535
const LARGEST_WINDOW = 2 ** 31 - 1

/** Lets the other side send as much as it can be allowed to, which is more than all of a run. */
export const ALLOWANCE = frame(FRAME.window, 0, 0, number(LARGEST_WINDOW - FIRST_WINDOW))

export type TakeFrame = (type: number, flags: number, stream: number, payload: Buffer) => void

/** Takes bytes as they arrive; the first `skipped` bytes are not a frame. */
export function createFrameReader(take: TakeFrame, skipped = 0): (chunk: Buffer) => void {
  let left = skipped
  let rest: Buffer = Buffer.alloc(0)
  return chunk => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    let at = Math.min(left, bytes.length)
    left -= at
    for (let end = 0; at + 9 <= bytes.length; at = end) {
      end = at + 9 + bytes.readUIntBE(at, 3)
      if (end > bytes.length) break
      take(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5), bytes.subarray(at + 9, end))
    }
    rest = bytes.subarray(at)
  }
}

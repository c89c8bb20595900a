/** One element of DER: its tag, what it holds, and all of its bytes. */
export interface Der {
  readonly tag: number
  readonly content: Uint8Array
  readonly whole: Uint8Array
}

export const Tag = {
  integer: 0x02,
  octets: 0x04,
  oid: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const

/** Reads the element at `at`. Throws a `RangeError` when the bytes are none. */
export function readDer(bytes: Uint8Array, at = 0): Der {
  const tag = bytes[at]
  const first = bytes[at + 1]
  if (tag === undefined || first === undefined) throw new RangeError('Expected a DER element, got the end')
  let start = at + 2
  let length = first
  if (first >= 0x80) {
    const count = first & 0x7f
    if (count === 0 || count > 4) throw new RangeError('Expected a DER element of a known length')
    length = 0
    for (let i = 0; i < count; i++) length = length * 256 + (bytes[start++] ?? Infinity)
  }
  const end = start + length
  if (!(end <= bytes.length)) throw new RangeError('Expected a whole DER element, got a part of it')
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) }
}

/** The elements that an element holds. */
export function elements({ content }: Pick<Der, 'content'>): Der[] {
  const all: Der[] = []
  for (let at = 0; at < content.length;) {
    const next = readDer(content, at)
    all.push(next)
    at += next.whole.length
  }
  return all
}

/** An object identifier in dots. */
export function oidOf({ content }: Pick<Der, 'content'>): string {
  const arcs: number[] = []
  let value = 0
  for (const byte of content) {
    value = value * 128 + (byte & 0x7f)
    if (byte >= 0x80) continue
    if (arcs.length === 0) {
      const top = Math.min(2, Math.floor(value / 40))
      arcs.push(top, value - top * 40)
    } else arcs.push(value)
    value = 0
  }
  return arcs.join('.')
}

/** A small integer. */
export function integerOf({ content }: Pick<Der, 'content'>): number {
  return content.reduce((value, byte) => value * 256 + byte, 0)
}

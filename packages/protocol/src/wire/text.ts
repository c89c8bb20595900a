/**
 * Text in the encoding of ZooKeeper's records, which differs from the UTF-8 of TextEncoder.
 *
 * Writing encodes UTF-16 units, so a character beyond U+FFFF becomes two sequences of three bytes instead of one of four. Reading
 * accepts standard UTF-8 and replaces malformed bytes by U+FFFD as often as the JVM's decoder does: a surrogate in three bytes
 * gives one replacement, where TextDecoder gives three.
 *
 * Optimised: loops over single bytes instead of TextEncoder and TextDecoder, except for long text that they write and read alike.
 * Why: most strings are short ASCII paths, for which those classes cost several times as much, and for other strings they give
 * different bytes. Tested against the simple versions in `text.test.ts`.
 */

const LONG = 1024
const SURROGATE = /[\ud800-\udfff]/
const encoder = new TextEncoder()

/** Whether TextEncoder is faster for a text, and gives the bytes of `writeText`: there must be no surrogate. */
export const suitsTextEncoder = (text: string): boolean => text.length >= LONG && !SURROGATE.test(text)

/** Returns the bytes that `writeText` writes for a text that suits TextEncoder. */
export const encodeLongText = (text: string): Uint8Array => encoder.encode(text)

/** Returns the length of `text` in bytes when written. */
export function textByteLength(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) length += unit < 0x800 ? 1 : 2
  }
  return length
}

/** Writes `text` at `at` into an array that is long enough. Returns the offset after it. */
export function writeText(text: string, into: Uint8Array, at: number): number {
  if (suitsTextEncoder(text)) return at + encoder.encodeInto(text, into.subarray(at)).written
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) into[at++] = unit
    else if (unit < 0x800) {
      into[at++] = 0xc0 | (unit >> 6)
      into[at++] = 0x80 | (unit & 0x3f)
    } else {
      into[at++] = 0xe0 | (unit >> 12)
      into[at++] = 0x80 | ((unit >> 6) & 0x3f)
      into[at++] = 0x80 | (unit & 0x3f)
    }
  }
  return at
}

/** Reads the text between two offsets; `view` is a view of the same bytes. Never fails: malformed bytes become U+FFFD. */
export function readText(
  bytes: Uint8Array,
  start: number,
  end: number,
  view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
): string {
  if (end - start >= LONG) return decoder.decode(withoutSurrogates(bytes.subarray(start, end)))
  if (!isAscii(view, start, end)) return readAnyText(bytes, start, end)
  // Very short names are concatenated faster than by a call.
  if (latin1Slice !== undefined && end - start > 3) return latin1Slice.call(bytes, start, end)
  return readAscii(bytes, start, end)
}

/** Returns whether all bytes are ASCII, comparing four at a time. */
function isAscii(view: DataView, start: number, end: number): boolean {
  let bits = 0
  let i = start
  for (; i + 4 <= end; i += 4) bits |= view.getInt32(i)
  for (; i < end; i++) bits |= view.getUint8(i)
  return (bits & 0x8080_8080) === 0
}

type Slice = (this: Uint8Array, start: number, end: number) => string

/**
 * `latin1Slice` of Node's `Buffer`, where the platform has a compatible one. It returns a flat string. A concatenated string is a
 * tree of its parts, which the first access must flatten: a lookup by such a path takes three times as long.
 */
const latin1Slice = platformSlice()

function platformSlice(): Slice | undefined {
  const { Buffer } = globalThis as { Buffer?: { prototype?: { latin1Slice?: Slice } } }
  const slice = Buffer?.prototype?.latin1Slice
  try {
    return slice?.call(Uint8Array.of(0x2f, 0x61, 0x62, 0x63, 0x7f), 1, 4) === 'abc' ? slice : undefined
  } catch {
    // Other platforms may have a function of this name that accepts its own arrays only.
    return undefined
  }
}

/** As `latin1Slice`, for platforms without it. */
export function readAscii(bytes: Uint8Array, start: number, end: number): string {
  let text = ''
  let i = start
  for (; i + 8 <= end; i += 8) {
    text += String.fromCharCode(
      bytes[i]!,
      bytes[i + 1]!,
      bytes[i + 2]!,
      bytes[i + 3]!,
      bytes[i + 4]!,
      bytes[i + 5]!,
      bytes[i + 6]!,
      bytes[i + 7]!,
    )
  }
  for (; i < end; i++) text += String.fromCharCode(bytes[i]!)
  return text
}

const REPLACEMENT = 0xfffd
const REPLACEMENT_BYTES = Uint8Array.of(0xef, 0xbf, 0xbd)

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes short text that is not only ASCII. */
function readAnyText(bytes: Uint8Array, start: number, end: number): string {
  const units: number[] = []
  let text = ''
  let at = start
  while (at < end) {
    const first = bytes[at]!
    if (first < 0x80) {
      units.push(first)
      at++
    } else {
      at += readSequence(bytes, at, end, first, units)
    }
    if (units.length >= 4096) {
      text += String.fromCharCode(...units)
      units.length = 0
    }
  }
  return text + String.fromCharCode(...units)
}

/** Returns bytes that TextDecoder reads with one replacement for each surrogate. Copies them if there is one. */
function withoutSurrogates(bytes: Uint8Array): Uint8Array {
  let clean = bytes
  const first = bytes.indexOf(0xed)
  if (first === -1) return bytes
  for (let i = first; i + 1 < bytes.length; i++) {
    if (bytes[i] !== 0xed || (bytes[i + 1]! & 0xe0) !== 0xa0) continue
    // Not `slice`, which returns a view where `bytes` is a Buffer of Node.
    if (clean === bytes) clean = new Uint8Array(bytes)
    if (continues(bytes[i + 2])) clean.set(REPLACEMENT_BYTES, i)
    // The beginning of a character that is incomplete counts once.
    else clean[i] = 0xe1
  }
  return clean
}

const continues = (byte: number | undefined): byte is number => byte !== undefined && (byte & 0xc0) === 0x80

/** Decodes one sequence that starts with `first` ≥ 0x80. Returns its length in bytes. */
function readSequence(bytes: Uint8Array, at: number, end: number, first: number, units: number[]): number {
  const second = at + 1 < end ? bytes[at + 1] : undefined
  if (first >= 0xc2 && first <= 0xdf) {
    if (!continues(second)) return replace(units, 1)
    units.push(((first & 0x1f) << 6) | (second & 0x3f))
    return 2
  }
  if (first >= 0xe0 && first <= 0xef) return readThree(bytes, at, end, first, second, units)
  if (first >= 0xf0 && first <= 0xf4) return readFour(bytes, at, end, first, second, units)
  return replace(units, 1)
}

function readThree(
  bytes: Uint8Array,
  at: number,
  end: number,
  first: number,
  second: number | undefined,
  units: number[],
): number {
  if (!continues(second) || (first === 0xe0 && second < 0xa0)) return replace(units, 1)
  const third = at + 2 < end ? bytes[at + 2] : undefined
  if (!continues(third)) return replace(units, 2)
  const unit = ((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f)
  // One replacement for the three bytes of a surrogate, where TextDecoder gives three.
  if (unit >= 0xd800 && unit <= 0xdfff) return replace(units, 3)
  units.push(unit)
  return 3
}

function readFour(
  bytes: Uint8Array,
  at: number,
  end: number,
  first: number,
  second: number | undefined,
  units: number[],
): number {
  if (!continues(second) || (first === 0xf0 && second < 0x90) || (first === 0xf4 && second > 0x8f))
    return replace(units, 1)
  const third = at + 2 < end ? bytes[at + 2] : undefined
  if (!continues(third)) return replace(units, 2)
  const fourth = at + 3 < end ? bytes[at + 3] : undefined
  if (!continues(fourth)) return replace(units, 3)
  const point =
    (((first & 0x07) << 18) | ((second & 0x3f) << 12) | ((third & 0x3f) << 6) | (fourth & 0x3f)) - 0x10000
  units.push(0xd800 | (point >> 10), 0xdc00 | (point & 0x3ff))
  return 4
}

function replace(units: number[], taken: number): number {
  units.push(REPLACEMENT)
  return taken
}

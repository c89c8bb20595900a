import { UsageError, type Bytes, type Codec } from '@zabra/client/core'
import { checkArgument, codec as aCodec } from '../support/checks.ts'

const VERSION = 0x0001_0001
const ITEM = 1
const END = 2

/**
 * Encodes items in the format of Curator's `DistributedQueue`: a version of four bytes, then each item as a byte
 * 1, its length and its bytes, then a byte 2. Its producers put one item into a znode, or several with `putMulti`.
 */
export function curatorItems<T>(codec: Codec<T>): Codec<readonly T[]> {
  checkArgument('curatorItems', 'a codec', codec, aCodec)
  return {
    encode: (values) => encode(values.map((value) => codec.encode(value))),
    decode: (data) => decode(data).map((item) => codec.decode(item)),
  }
}

function encode(items: readonly Bytes[]): Bytes {
  const size = items.reduce((sum, item) => sum + 5 + item.length, 5)
  const bytes = new Uint8Array(size)
  const view = new DataView(bytes.buffer)
  view.setInt32(0, VERSION)
  let at = 4
  for (const item of items) {
    view.setUint8(at, ITEM)
    view.setInt32(at + 1, item.length)
    bytes.set(item, at + 5)
    at += 5 + item.length
  }
  view.setUint8(at, END)
  return bytes
}

function decode(data: Bytes): Bytes[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  if (data.length < 4 || view.getInt32(0) !== VERSION) throw wrong(`version ${VERSION}`, data)
  const items: Bytes[] = []
  for (let at = 4; at < data.length;) {
    const code = view.getUint8(at)
    if (code === END) return items
    if (code !== ITEM || at + 5 > data.length) throw wrong(`an item at byte ${at}`, data)
    const length = view.getInt32(at + 1)
    if (length < 0 || at + 5 + length > data.length)
      throw wrong(`an item of ${length} bytes at byte ${at}`, data)
    items.push(data.subarray(at + 5, at + 5 + length))
    at += 5 + length
  }
  throw wrong('an end', data)
}

const wrong = (expected: string, { length }: Bytes): UsageError =>
  new UsageError(`Expected items of Curator with ${expected}, got ${length} bytes without it`)

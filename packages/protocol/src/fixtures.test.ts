// oxlint-disable-next-line no-restricted-imports -- a test reads the files that it checks
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Reader } from './index.ts'
import {
  Conversation,
  encode,
  fromHex,
  fromJson,
  readRecord,
  toHex,
  toJson,
  type Fixture,
  type Part,
} from './testing/conversation.ts'

const folder = new URL('../fixtures/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
const load = (name: string): Fixture[] => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Fixture[]

describe.each(files)('the bytes of %s', (name) => {
  const fixtures = load(name)
  // Fixtures of one connection share its pending requests, since a reply may follow the next request.
  let conversation = new Conversation()
  it.each(fixtures)('$id $title are decoded as recorded and encoded identically', (fixture) => {
    if (fixture.handshake || fixture.id.startsWith('F')) conversation = new Conversation()
    for (const { from, hex, parts, canonical } of fixture.frames) {
      expect(toJson(conversation.decode(from, fromHex(hex), fixture.handshake))).toEqual(parts)
      const written = toHex(encode(fromJson(parts) as Part[]))
      if (canonical === false) expect(written).not.toBe(hex)
      else expect(written).toBe(hex)
    }
  })
})

it('the fixtures have more than a hundred exchanges', () => {
  expect(files.flatMap(load).length).toBeGreaterThan(106)
})

describe('the records of files and of servers', () => {
  const bytes = JSON.parse(readFileSync(new URL('records/files-and-quorum-3.9.json', folder), 'utf8')) as {
    title: string
    hex: string
    parts: Part[]
  }[]
  it.each(bytes)('$title is decoded as recorded and encoded identically', ({ hex, parts }) => {
    const reader = new Reader(fromHex(hex))
    const read = parts.map(({ record }) => ({ record, value: toJson(readRecord(record, reader)) }))
    expect(read).toEqual(parts)
    expect(reader.remaining).toBe(0)
    expect(toHex(encode(fromJson(parts) as Part[])).slice(8)).toBe(hex)
  })
})

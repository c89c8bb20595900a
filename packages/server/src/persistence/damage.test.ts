import { describe, expect, it } from 'vitest'
import { DamageError, RecoveryError } from './errors.ts'
import { createTxn, FOLDER, LogFixture, payloadOf } from './testing/log-fixture.ts'

const LAST = 9
/** The transactions of the older log, of the newest one, and the snapshots that exist beside them. */
const [OLD_LOG, NEWEST_LOG, OLD_SNAPSHOT, NEWEST_SNAPSHOT] = ['log.1', 'log.7', 'snapshot.0', 'snapshot.6']
const HEADER = 16
const ENTRY = 12 + payloadOf(createTxn(1)).length + 1

/** Returns the offset of a field of the entry number `entry` of a log. */
const inEntry = (entry: number, field: number) => () => HEADER + entry * ENTRY + field
const fromStart = (offset: number) => () => offset
const fromEnd = (offset: number) => (size: number) => size - offset

const logPlaces = (entry: number): Record<string, (size: number) => number> => ({
  'the upper half of the checksum': inEntry(entry, 0),
  'the checksum': inEntry(entry, 7),
  'the length': inEntry(entry, 8),
  'the low byte of the length': inEntry(entry, 11),
  'the session': inEntry(entry, 12),
  'the cxid': inEntry(entry, 20),
  'the zxid': inEntry(entry, 31),
  'the time': inEntry(entry, 39),
  'the type': inEntry(entry, 43),
  'the length of the path': inEntry(entry, 47),
  'the path': inEntry(entry, 49),
  'the data': inEntry(entry, 60),
  'the end mark': inEntry(entry, ENTRY - 1),
})
const places: readonly (readonly [file: string, place: string, at: (size: number) => number])[] = [
  ...[OLD_LOG, NEWEST_LOG].flatMap((file) => [
    [file, 'the magic number', fromStart(0)] as const,
    [file, 'the version', fromStart(7)] as const,
    [file, 'the id of the database', fromStart(15)] as const,
    ...(file === OLD_LOG ? [0, 3, 5] : [0, 1, 2]).flatMap((entry) =>
      Object.entries(logPlaces(entry)).map(([name, at]) => [file, `${name} of entry ${entry}`, at] as const),
    ),
  ]),
  ...[OLD_SNAPSHOT, NEWEST_SNAPSHOT].flatMap((file) => [
    [file, 'the magic number', fromStart(0)] as const,
    [file, 'the version', fromStart(7)] as const,
    [file, 'the id of the database', fromStart(15)] as const,
    [file, 'the number of sessions', fromStart(19)] as const,
    [file, 'a session', fromStart(27)] as const,
    [file, 'a timeout', fromStart(31)] as const,
    [file, 'the number of access control lists', fromStart(35)] as const,
    [file, 'the first access control list', fromStart(50)] as const,
    [file, 'the first node', fromStart(90)] as const,
    [file, 'the end of the nodes', fromEnd(70)] as const,
    [file, 'the last zxid', fromEnd(15)] as const,
    [file, 'the checksum of the last seal', fromEnd(7)] as const,
    [file, 'the end of the last seal', fromEnd(1)] as const,
  ]),
]

const damages: Record<string, (bytes: Uint8Array, at: number) => Uint8Array> = {
  'a flipped bit': (bytes, at) => bytes.with(at, bytes[at]! ^ 1),
  'all bits set': (bytes, at) => bytes.with(at, 0xff),
  'the rest missing': (bytes, at) => bytes.slice(0, at),
}

describe('recovery of a folder of two logs and two snapshots', () => {
  it.each(Object.keys(damages))(
    `with %s at any of ${places.length} places is refused or has all transactions`,
    async (name) => {
      const fixture = await new LogFixture().open({ preallocateBytes: 0 })
      await fixture.snapshot()
      await fixture.appendAll(1, 6)
      await fixture.snapshot()
      await fixture.log.close()
      await fixture.open({ preallocateBytes: 0 })
      await fixture.appendAll(7, LAST)
      await fixture.log.close()
      expect(fixture.fileNames().toSorted()).toEqual([OLD_LOG, NEWEST_LOG, OLD_SNAPSHOT, NEWEST_SNAPSHOT])
      const sound = fixture.disk
      for (const [file, place, at] of places) {
        const what = `${name}: ${place} in ${file}`
        const path = `${FOLDER}/${file}`
        const bytes = await sound.readFile(path)
        fixture.disk = sound.clone()
        fixture.disk.putFile(path, damages[name]!(bytes, at(bytes.length)))
        const result = await fixture.recover().catch((error: unknown) => error)
        if (result instanceof DamageError || result instanceof RecoveryError) {
          expect(result.action, what).not.toBe('')
          continue
        }
        if (result instanceof Error) throw new Error(what, { cause: result })
        const { lastZxid, tree } = result as Awaited<ReturnType<LogFixture['recover']>>
        // The end of the newest log cannot be told from a write that a crash cut short, which was not acknowledged.
        const mayBeTorn = file === NEWEST_LOG && name === 'the rest missing'
        if (mayBeTorn) expect(lastZxid, what).toBeGreaterThanOrEqual(6)
        else expect(lastZxid, what).toBe(LAST)
        expect(tree.nodeCount, what).toBe(4 + lastZxid)
      }
    },
  )
})

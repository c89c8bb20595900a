import { ErrorCode, OpCode, Reader } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { PATHS } from '../operations/fields.ts'
import type { DecodedWrite } from '../operations/types.ts'
import { Tree } from '../tree/index.ts'
import type { MultiPartsBuilder, SubTxn, Txn } from '../types.ts'
import { prepareMulti } from './multi.ts'
import { PendingTree } from './pending-tree.ts'
import { reject } from './request-error.ts'
import { encodeRequest, failure, PreparerFixture, type RequestSpec } from './testing/preparer-fixture.ts'

const STEP_BYTES = 32_768
/** Bytes of the header of a part, and of a setData without its data. */
const PART_BYTES = 9 + 6 + 4 + 4
const part = (bytes = PART_BYTES): RequestSpec => ({
  op: 'setData',
  path: '/a',
  data: 'x'.repeat(bytes - PART_BYTES),
})
const parts = (count: number): RequestSpec[] => Array.from({ length: count }, () => part())
const succeed = (): SubTxn => ({ type: OpCode.check, path: '/a', version: 1 })

interface Run {
  readonly prepare?: (part: DecodedWrite) => SubTxn
  readonly createParts?: (bytes: number) => MultiPartsBuilder
}

/** Prepares a multi whose body begins after a header. Returns the number of pauses and the transaction. */
function run(asks: readonly RequestSpec[], { prepare = succeed, createParts }: Run = {}) {
  const { body } = encodeRequest(asks)
  const start = 40
  const reader = new Reader(Uint8Array.of(...new Uint8Array(start), ...body), start)
  const pending = new PendingTree(new Tree({ extendedTypes: true, digest: true }))
  const steps = prepareMulti(pending, reader, PATHS, prepare, createParts)
  let [pauses, step] = [0, steps.next()]
  for (; step.done !== true; step = steps.next()) pauses++
  return { pauses, txn: step.value, bytes: body.length }
}

describe('a multi is prepared in steps', () => {
  it.each([
    [100, 0],
    [101, 1],
    [200, 1],
    [201, 2],
  ])(
    'of at most 100 parts: %i parts need %i pauses to be decoded, and as many to be prepared',
    (count, pauses) => {
      expect(run(parts(count)).pauses).toBe(2 * pauses)
    },
  )

  it('of 32 KiB of parts, counted from the end of the step before', () => {
    expect(run([part(STEP_BYTES)]).pauses).toBe(0)
    expect(run([part(STEP_BYTES + 1)]).pauses).toBe(2)
    expect(run([part(STEP_BYTES), part(), part(STEP_BYTES)]).pauses).toBe(2)
    expect(run([part(STEP_BYTES), part(), part(STEP_BYTES + 1)]).pauses).toBe(4)
    expect(run([part(STEP_BYTES + 1), part(STEP_BYTES + 1)]).pauses).toBe(4)
  })

  it('of 32 KiB of identities, as which an entry of a few bytes may count', () => {
    const acl = [{ perms: 31, id: { scheme: 'digest', id: 'x'.repeat(20_000) } }]
    const prepare = (): SubTxn =>
      ({ type: OpCode.create, path: '/a', data: null, acl, ephemeral: false, parentCVersion: 1 }) as SubTxn
    expect([run(parts(2), { prepare }).pauses, run(parts(10), { prepare }).pauses]).toEqual([0, 4])
  })

  it('that undo a failure and note the parts that are not tried, too', () => {
    const asks = Array.from({ length: 1000 }, (_, n): RequestSpec => ({
      op: 'create',
      path: n === 700 ? '/none/x' : `/n${n}`,
    }))
    const { preparer } = new PreparerFixture()
    const { type, body } = encodeRequest(asks)
    const steps = preparer.prepareInSteps({ sessionId: 5n, type, identities: [] }, new Reader(body), 1, 1)
    let pauses = 0
    while (steps.next().done !== true) pauses++
    // Nine times while parts are decoded and seven times while they are prepared, seven times while 701 changes are undone, at
    // part 800 and at part 900.
    expect(pauses).toBe(9 + 7 + 7 + 2)
    expect(preparer.pendingNodes).toBe(0)
  })
})

describe('the parts of a multi', () => {
  it('go to the given builder when they are more than 100', () => {
    const sizes: number[] = []
    const built: SubTxn[] = []
    const createParts = (bytes: number): MultiPartsBuilder => {
      sizes.push(bytes)
      return {
        get length() {
          return built.length
        },
        add: (txn) => void built.push(txn),
        done: () => built,
      }
    }
    run(parts(100), { createParts })
    expect(sizes).toEqual([])
    const { txn, bytes } = run(parts(101), { createParts })
    expect(sizes).toEqual([bytes])
    expect(txn).toEqual({ type: OpCode.multi, txns: built })
    expect(built).toHaveLength(101)
  })

  it('are none that are prepared when the last one is of an operation that a multi cannot hold', () => {
    const { body } = encodeRequest([part(), part()])
    // The op code of the second part.
    body[PART_BYTES + 3] = OpCode.sync
    const pending = new PendingTree(new Tree({ extendedTypes: true, digest: true }))
    const prepare = (): SubTxn => expect.unreachable()
    expect(prepareMulti(pending, new Reader(body), PATHS, prepare).next()).toEqual({
      done: true,
      value: failure(ErrorCode.MARSHALLINGERROR),
    })
  })

  it('fail as a whole where one of them is refused as undecodable', () => {
    let count = 0
    const prepare = (): SubTxn => (++count === 2 ? reject(ErrorCode.MARSHALLINGERROR) : succeed())
    expect(run(parts(3), { prepare }).txn).toEqual(failure(ErrorCode.MARSHALLINGERROR))
    expect(count).toBe(2)
  })

  it('hide no error of the server itself', () => {
    const prepare = (): SubTxn => {
      throw new TypeError('a defect')
    }
    expect(() => run(parts(1), { prepare })).toThrow('a defect')
    const pending = new PendingTree(new Tree({ extendedTypes: true, digest: true }))
    expect(() => prepareMulti(pending, {} as Reader, PATHS, succeed).next()).toThrow(TypeError)
  })

  it('lack a list in any place: the multi takes no zxid, before anything that is not allowed', () => {
    const notAllowed: RequestSpec = { op: 'create', path: '/a', flags: 9 }
    const noList: RequestSpec = { op: 'create', path: '/a', acl: null }
    const refused = failure(ErrorCode.MARSHALLINGERROR) as Txn
    expect(run([notAllowed, part()]).txn).toEqual(refused)
    expect(run([{ ...part(), path: null }, part()]).txn).toEqual(refused)
    expect(run([noList, notAllowed]).txn).toBe(ErrorCode.MARSHALLINGERROR)
    expect(run([notAllowed, noList, part()]).txn).toBe(ErrorCode.MARSHALLINGERROR)
  })
})

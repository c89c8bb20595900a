import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contendersInOrder, createParser, compareSequence, turnStatusOf } from './contenders.ts'

const parse = createParser(['lock-', '__lock__', '__WRIT__'], ['__READ__', '__rlock__'])
const lock = (sequence: number): string =>
  `guid-lock-${sequence < 0 ? '-' : ''}${String(Math.abs(sequence)).padStart(sequence < 0 ? 9 : 10, '0')}`

describe('contender names', () => {
  it('are parsed in the naming schemes of all clients that share the queue', () => {
    expect(parse('7d-lock-0000000012')).toMatchObject({ sequence: 12, isShared: false })
    expect(parse('_c_7d-lock-0000000012')).toMatchObject({ sequence: 12, isShared: false })
    expect(parse('7d__lock__0000000012')).toMatchObject({ sequence: 12, isShared: false })
    expect(parse('7d__rlock__0000000012')).toMatchObject({ sequence: 12, isShared: true })
    expect(parse('7d-__READ__0000000012')).toMatchObject({ sequence: 12, isShared: true })
  })

  it('keep a negative sign, and do not take the dash of a prefix for one', () => {
    expect(parse('x-lock-0000000001')?.sequence).toBe(1)
    expect(parse('x-lock--2147483648')?.sequence).toBe(-2147483648)
    expect(parse('x-lock--000000001')?.sequence).toBe(-1)
  })

  it('are parsed as a regular expression would', () => {
    const pattern = /(__READ__|__rlock__|lock-|__lock__|__WRIT__)(-?\d{10}|-\d{9})$/
    const piece = fc.constantFrom(
      'lock-',
      '__lock__',
      '__READ__',
      '-',
      '0',
      '12',
      '2147483648',
      '000000001',
      'x',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const name = pieces.join('')
        const match = pattern.exec(name)
        const expected = match && {
          name,
          sequence: Number(match[2]) | 0,
          suffix: match[2],
          isShared: match[1] === '__READ__' || match[1] === '__rlock__',
        }
        expect(parse(name)).toEqual(expected ?? undefined)
      }),
      { numRuns: 2000 },
    )
  })

  it('of foreign children are ignored', () => {
    const foreign = [
      'leader',
      'x-lock-',
      'lock-12',
      'x-queue-0000000001',
      'x-lock-0000000001-old',
      '0000000001',
    ]
    for (const name of [...foreign, 'x-lock-00000000x1', 'x-lock-+000000001', '-2147483648', '']) {
      expect(parse(name)).toBeUndefined()
    }
    expect(turnStatusOf(['leader', lock(3)], lock(3), parse)).toEqual({ turn: 'now' })
  })
})

describe('turn status', () => {
  it('lets the first contender proceed, and others wait for their predecessor (ZOOKEEPER-3162)', () => {
    const names = [lock(3), lock(1), lock(2)]
    expect(turnStatusOf(names, lock(1), parse)).toEqual({ turn: 'now' })
    expect(turnStatusOf(names, lock(2), parse)).toEqual({ turn: 'behind', name: lock(1) })
    expect(turnStatusOf(names, lock(3), parse)).toEqual({ turn: 'behind', name: lock(2) })
    expect(turnStatusOf(names, lock(4), parse)).toEqual({ turn: 'missing' })
  })

  it('follows the sequence number over its wrap (ZOOKEEPER-2931: sorting by text or number puts wrapped names first)', () => {
    const names = [lock(-2147483647), lock(2147483647), lock(-2147483648), lock(2147483646)]
    expect(contendersInOrder(names, parse).map(({ sequence }) => sequence)).toEqual([
      2147483646, 2147483647, -2147483648, -2147483647,
    ])
    expect(turnStatusOf(names, lock(2147483646), parse)).toEqual({ turn: 'now' })
    expect(turnStatusOf(names, lock(-2147483648), parse)).toEqual({ turn: 'behind', name: lock(2147483647) })
  })

  it('lets readers enter together, behind the nearest writer only', () => {
    const names = [
      'a-__READ__0000000001',
      'b-__WRIT__0000000002',
      'c-__WRIT__0000000003',
      'd-__READ__0000000004',
      'e-__READ__0000000005',
    ]
    const turns = names.map((name) => turnStatusOf(names, name, parse))
    expect(turns.map((turn) => ('name' in turn ? turn.name[0] : turn.turn))).toEqual([
      'now',
      'a',
      'b',
      'c',
      'c',
    ])
  })

  it('never admits two exclusive contenders, at any sequence number', () => {
    const queue = fc.record({
      start: fc.integer({ min: -2147483648, max: 2147483647 }),
      steps: fc.array(fc.record({ gap: fc.integer({ min: 1, max: 50 }), shared: fc.boolean() }), {
        minLength: 1,
        maxLength: 30,
      }),
    })
    fc.assert(
      fc.property(queue, ({ start, steps }) => {
        let at = start
        const names = steps.map(({ gap, shared }) => {
          at = (at + gap) | 0
          const digits = `${at < 0 ? '-' : ''}${String(Math.abs(at)).padStart(at < 0 ? 9 : 10, '0')}`
          return shared ? `r__READ__${digits}` : `w__WRIT__${digits}`
        })
        const inside = names.filter((name) => turnStatusOf(names, name, parse).turn === 'now')
        expect(inside.length).toBeGreaterThan(0)
        const writers = inside.filter((name) => name.startsWith('w')).length
        expect(writers === 0 || inside.length === 1).toBe(true)
        // A waiter always waits for an earlier contender, so the queue always advances.
        for (const name of names) {
          const verdict = turnStatusOf(names, name, parse)
          if (verdict.turn === 'behind')
            expect(compareSequence(parse(verdict.name)!.sequence, parse(name)!.sequence)).toBeLessThan(0)
        }
      }),
    )
  })
})

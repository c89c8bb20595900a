import { UsageError } from '@zabra/client/core'
import { sequenceOf } from '../waiting/line.ts'

/** An item as its name tells of it. */
export interface Item {
  readonly name: string
  /** Smaller is sooner. */
  readonly priority: number
  /** Milliseconds since 1970, by the clock of the servers, before which nobody gets it; 0 for at once. */
  readonly due: number
  readonly sequence: number
}

/** Where a queue keeps what, and how its items are called. */
export interface Layout {
  readonly items: string
  readonly claims: string
  readonly dead: string
  readonly marks: string
  readonly line: string
  readonly putters: string
  readonly parents: 'container' | 'persistent'
  /** The name of an item up to its sequence number. */
  readonly prefix: (priority: number | undefined, due: number | undefined) => string
  /** Undefined for a name that is no item. */
  readonly parse: (name: string) => Item | undefined
}

const MIDDLE = 0x8000_0000
const OWN = /^queue-(?:([0-9a-f]{8})-)?(?:([0-9a-f]{11})-)?(?:-?\d{10}|-\d{9})$/
const KAZOO = /^entry-(\d{3})-\d{10}$/
const KAZOO_PRIORITY = 100

/** The layout of a queue. `kazoo` is that of kazoo's `LockingQueue`. */
export function layoutOf(path: string, naming: 'recipe' | 'kazoo'): Layout {
  const inside = (name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`)
  const common = {
    dead: inside('dead'),
    marks: inside('marks'),
    line: inside('line'),
    putters: inside('putters'),
  }
  return naming === 'kazoo'
    ? { ...common, items: inside('entries'), claims: inside('taken'), parents: 'persistent', ...kazooNames }
    : { ...common, items: inside('items'), claims: inside('claims'), parents: 'container', ...ownNames }
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

const ownNames = {
  prefix(priority = 0, due?: number): string {
    if (!Number.isInteger(priority) || priority < -MIDDLE || priority >= MIDDLE) {
      throw new UsageError(`Expected a priority that fits 32 bits with a sign, got ${priority}`)
    }
    const urgency = hex(priority + MIDDLE, 8)
    return due === undefined ? `queue-${urgency}-` : `queue-${urgency}-${hex(Math.max(0, due), 11)}-`
  },
  parse(name: string): Item | undefined {
    const parts = OWN.exec(name)
    if (parts === null) return undefined
    const priority = parts[1] === undefined ? 0 : Number.parseInt(parts[1], 16) - MIDDLE
    return { name, priority, due: Number.parseInt(parts[2] ?? '0', 16), sequence: sequenceOf(name)! }
  },
}

const kazooNames = {
  prefix(priority = KAZOO_PRIORITY, due?: number): string {
    if (due !== undefined)
      throw new UsageError('Expected no delay with the names of kazoo, which have no room for it')
    if (!Number.isInteger(priority) || priority < 0 || priority > 999) {
      throw new UsageError(`Expected a priority from 0 to 999 with the names of kazoo, got ${priority}`)
    }
    return `entry-${String(priority).padStart(3, '0')}-`
  },
  parse(name: string): Item | undefined {
    const parts = KAZOO.exec(name)
    return parts === null
      ? undefined
      : { name, priority: Number(parts[1]), due: 0, sequence: sequenceOf(name)! }
  },
}

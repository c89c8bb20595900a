import { UsageError } from '@zabra/client/core'
import { decodeName, encodeName } from '../support/name-codec.ts'

/** An item as its name tells of it. */
export interface Item {
  readonly name: string
  /** Smaller is sooner. */
  readonly priority: number
  /** Milliseconds since 1970, by the clock of the servers, before which nobody gets it; 0 for at once. */
  readonly due: number
  readonly sequence: number
  /** What its producer calls it, where it said so. */
  readonly id?: string | undefined
}

/** What the name of an item is made of. */
export interface NameParts {
  readonly priority?: number | undefined
  readonly due?: number | undefined
  readonly id?: string | undefined
}

/** Whose layout a queue has. */
export type QueueNaming = 'recipe' | 'kazoo' | 'curator'

/** Where a queue keeps what, and how its items are called. */
export interface QueueLayout {
  readonly items: string
  readonly claims: string
  readonly dead: string
  readonly marks: string
  readonly line: string
  readonly putters: string
  /** Written by everybody who puts, where the bound is hard. */
  readonly gate: string
  readonly parents: 'container' | 'persistent'
  /** The name of an item up to its sequence number. */
  readonly prefix: (parts: NameParts) => string
  /** Undefined for a name that is no item. */
  readonly parse: (name: string) => Item | undefined
}

const PRIORITY_OFFSET = 0x8000_0000
const OWN = /^queue-(?:([0-9a-f]{8})-)?(?:([0-9a-f]{11})-)?(?:=(.*)=-)?(-?\d{10}|-\d{9})$/
const KAZOO = /^entry-(\d{3})-(\d{10})$/
const CURATOR = /^queue-([01][0-9A-F]{8})?(-?\d{10}|-\d{9})$/
const KAZOO_PRIORITY = 100

/**
 * The layout of a queue. `kazoo` is that of kazoo's `LockingQueue`; `curator` that of Curator's `DistributedQueue` and
 * `DistributedPriorityQueue`, which keep their items in the very folder of the queue: what else there is has one beside it.
 */
export function queueLayout(path: string, naming: QueueNaming): QueueLayout {
  if (naming === 'curator') {
    if (path === '/') throw new UsageError('Expected a path below the root with the names of Curator')
    return {
      items: path,
      ...siblingFolders(`${path}.queue`),
      claims: `${path}.queue/claims`,
      ...curatorNames,
    }
  }
  const inside = (name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`)
  const common = siblingFolders(path === '/' ? '' : path)
  return naming === 'kazoo'
    ? { ...common, items: inside('entries'), claims: inside('taken'), ...kazooNames, parents: 'persistent' }
    : { ...common, items: inside('items'), claims: inside('claims'), ...ownNames }
}

const siblingFolders = (folder: string) =>
  ({
    dead: `${folder}/dead`,
    marks: `${folder}/marks`,
    line: `${folder}/line`,
    putters: `${folder}/putters`,
    gate: `${folder}/gate`,
    parents: 'container',
  }) as const

function checkPriority(priority: number): void {
  if (Number.isInteger(priority) && priority >= -PRIORITY_OFFSET && priority < PRIORITY_OFFSET) return
  throw new UsageError(`Expected a priority that fits 32 bits with a sign, got ${priority}`)
}

function checkPriorityOnly(whose: string, { due, id }: NameParts): void {
  if (due === undefined && id === undefined) return
  throw new UsageError(`Expected no delay and no id with the names of ${whose}, which have no room for them`)
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

const ownNames = {
  prefix({ priority = 0, due, id }: NameParts): string {
    checkPriority(priority)
    const urgency = `${hex(priority + PRIORITY_OFFSET, 8)}-`
    const time = due === undefined ? '' : `${hex(Math.max(0, due), 11)}-`
    return `queue-${urgency}${time}${id === undefined ? '' : `=${encodeName(id)}=-`}`
  },
  parse(name: string): Item | undefined {
    const parts = OWN.exec(name)
    if (parts === null) return undefined
    const priority = parts[1] === undefined ? 0 : Number.parseInt(parts[1], 16) - PRIORITY_OFFSET
    const id = parts[3] === undefined ? undefined : decodeName(parts[3])
    const due = Number.parseInt(parts[2] ?? '0', 16)
    return { name, priority, due, sequence: Number(parts[4]) | 0, id }
  },
}

const kazooNames = {
  prefix({ priority = KAZOO_PRIORITY, ...more }: NameParts): string {
    checkPriorityOnly('kazoo', more)
    if (!Number.isInteger(priority) || priority < 0 || priority > 999) {
      throw new UsageError(`Expected a priority from 0 to 999 with the names of kazoo, got ${priority}`)
    }
    return `entry-${String(priority).padStart(3, '0')}-`
  },
  parse(name: string): Item | undefined {
    const parts = KAZOO.exec(name)
    return parts === null
      ? undefined
      : { name, priority: Number(parts[1]), due: 0, sequence: Number(parts[2]) | 0 }
  },
}

/** A sign, which is 0 below zero, and eight digits of two's complement. None is what `DistributedQueue` writes. */
const curatorNames = {
  prefix({ priority, ...more }: NameParts): string {
    checkPriorityOnly('Curator', more)
    if (priority === undefined) return 'queue-'
    checkPriority(priority)
    return `queue-${priority < 0 ? '0' : '1'}${hex(priority >>> 0, 8).toUpperCase()}`
  },
  parse(name: string): Item | undefined {
    const parts = CURATOR.exec(name)
    if (parts === null) return undefined
    const priority = parts[1] === undefined ? 0 : Number.parseInt(parts[1].slice(1), 16) | 0
    return { name, priority, due: 0, sequence: Number(parts[2]) | 0 }
  },
}

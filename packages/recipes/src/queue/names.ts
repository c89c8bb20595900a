import { UsageError } from '@zabra/client/core'
import { childPath } from '@zabra/client/recipe-kit'
import { decodeName, encodeName } from '../support/name-codec.ts'

/** An item, as parsed from its name. */
export interface Item {
  readonly name: string
  /** Lower is more urgent. */
  readonly priority: number
  /** Server time in milliseconds since 1970 before which the item is not delivered; 0 for at once. */
  readonly due: number
  readonly sequence: number
  /** Id that the producer gave it, if any. */
  readonly id?: string | undefined
}

/** The parts of an item's name. */
export interface NameParts {
  readonly priority?: number | undefined
  readonly due?: number | undefined
  readonly id?: string | undefined
}

/** Naming scheme of a queue. */
export type QueueNaming = 'recipe' | 'kazoo' | 'kazooPlain' | 'curator'

/** The paths and names of a queue. */
export interface QueueLayout {
  readonly items: string
  readonly claims: string
  readonly dead: string
  readonly marks: string
  readonly line: string
  readonly putters: string
  /** Written by every producer when the bound is hard. */
  readonly gate: string
  readonly parents: 'container' | 'persistent'
  /** Returns the name of an item up to its sequence number. */
  readonly prefix: (parts: NameParts) => string
  /** Returns undefined for a name that is no item. */
  readonly parse: (name: string) => Item | undefined
}

const PRIORITY_OFFSET = 0x8000_0000
/** The time in a name has eleven hexadecimal digits. */
const MAX_DUE = 16 ** 11
const OWN = /^queue-(?:([0-9a-f]{8})-)?(?:([0-9a-f]{11})-)?(?:=(.*)=-)?(-?\d{10}|-\d{9})$/
const KAZOO = /^entry-(\d{3})-(\d{10})$/
const CURATOR = /^queue-([01][0-9A-F]{8})?(-?\d{10}|-\d{9})$/
const KAZOO_PRIORITY = 100

/**
 * Returns the layout of a queue. `kazoo` is that of kazoo's `LockingQueue`. `kazooPlain` is that of its `Queue`, and
 * `curator` that of Curator's `DistributedQueue` and `DistributedPriorityQueue`; both keep items directly below the
 * queue's path, and everything else is in a sibling directory.
 */
export function queueLayout(path: string, naming: QueueNaming): QueueLayout {
  if (naming === 'curator' || naming === 'kazooPlain') {
    if (path === '/') throw new UsageError(`Expected a path below the root with the naming ${naming}`)
    return {
      items: path,
      ...siblingFolders(`${path}.queue`),
      claims: `${path}.queue/claims`,
      ...(naming === 'curator' ? curatorNames : kazooNames),
    }
  }
  const common = siblingFolders(path)
  return naming === 'kazoo'
    ? {
        ...common,
        items: childPath(path, 'entries'),
        claims: childPath(path, 'taken'),
        ...kazooNames,
        parents: 'persistent',
      }
    : { ...common, items: childPath(path, 'items'), claims: childPath(path, 'claims'), ...ownNames }
}

const siblingFolders = (folder: string) =>
  ({
    dead: childPath(folder, 'dead'),
    marks: childPath(folder, 'marks'),
    line: childPath(folder, 'line'),
    putters: childPath(folder, 'putters'),
    gate: childPath(folder, 'gate'),
    parents: 'container',
  }) as const

function checkPriority(priority: number): void {
  if (Number.isInteger(priority) && priority >= -PRIORITY_OFFSET && priority < PRIORITY_OFFSET) return
  throw new UsageError(`Expected a priority that fits 32 bits with a sign, got ${priority}`)
}

function checkPriorityOnly(whose: string, { due, id }: NameParts): void {
  if (due === undefined && id === undefined) return
  throw new UsageError(`Expected no delay and no id with the naming of ${whose}, which cannot store them`)
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

const ownNames = {
  prefix({ priority = 0, due, id }: NameParts): string {
    checkPriority(priority)
    if (due !== undefined && !(due < MAX_DUE))
      throw new UsageError('Expected a delay of the item that ends before the year 2527')
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
      throw new UsageError(`Expected a priority from 0 to 999 with the naming of kazoo, got ${priority}`)
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

/** A sign, 0 for negative, and eight digits of two's complement. `DistributedQueue` writes no priority. */
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

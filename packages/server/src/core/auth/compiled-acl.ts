import { Perms, type ACL } from '@zabra/protocol'
import type { Identity } from '../types.ts'
import { isEqualId, type AclScheme } from './schemes.ts'

/** The entries of one scheme. */
interface SchemeEntries {
  /** The permissions of the ids that match only themselves. */
  readonly byId: Map<string, number>
  readonly patterns: { readonly perms: number; readonly matches: (proved: string) => boolean }[]
}

/**
 * A long access control list, indexed by scheme and id: to scan a thousand entries for each of a hundred identities takes
 * milliseconds. Holds its verdicts for as long as the lists of identities exist.
 */
export class CompiledAcl {
  /** The permissions of everyone. */
  #anyone = 0
  readonly #schemes = new Map<string, SchemeEntries>()
  readonly #granted = new WeakMap<readonly Identity[], number>()

  /** By which the list was compiled. */
  readonly schemes: ReadonlyMap<string, AclScheme>

  constructor(acl: readonly ACL[], schemes: ReadonlyMap<string, AclScheme>) {
    this.schemes = schemes
    for (const { perms, id: entry } of acl) {
      const { scheme: name, id } = entry
      if (name === 'world' && id === 'anyone') this.#anyone |= perms
      const scheme = schemes.get(name ?? '')
      if (scheme === undefined) continue
      let entries = this.#schemes.get(name!)
      if (entries === undefined) this.#schemes.set(name!, (entries = { byId: new Map(), patterns: [] }))
      addEntry(entries, scheme, id ?? '', perms)
    }
  }

  /** Returns the permissions that some identity has, if they were computed for this array of identities. */
  known(identities: readonly Identity[]): number | undefined {
    return this.#granted.get(identities)
  }

  /** Computes the permissions that some identity has. */
  grantedTo(identities: readonly Identity[]): number {
    const granted = this.#evaluate(identities)
    this.#granted.set(identities, granted)
    return granted
  }

  #evaluate(identities: readonly Identity[]): number {
    let granted = this.#anyone
    for (const { scheme, id } of identities) {
      if (scheme === 'super') return Perms.ALL
      const entries = this.#schemes.get(scheme)
      if (entries === undefined) continue
      granted |= entries.byId.get(id) ?? 0
      for (const { perms, matches } of entries.patterns)
        if ((perms & ~granted) !== 0 && matches(id)) granted |= perms
    }
    return granted
  }
}

/** To compare an entry with the identities of a client takes this share of the time in which it is compiled. */
const COMPARED_SHARE = 16

/** A list of so many entries takes a tenth of a millisecond to be compiled. */
const LONG_LIST = 200

/** The property of a list that holds its compiled form. */
const COMPILED = Symbol('compiled')

/** A list, with its compiled form once that was needed. */
type HeldList = readonly ACL[] & { readonly [COMPILED]?: CompiledAcl }

/**
 * Compiles lists once each. A list holds its compiled form itself: a table of limited size would compile lists again and again that
 * are checked in turn, and keep those that no node has any more.
 */
export class CompiledAcls {
  readonly #schemes: ReadonlyMap<string, AclScheme>
  readonly #onLong: () => void
  /** Entries that were compiled, ever; those that were compared with other identities count less. */
  entriesVisited = 0

  /** Calls `onLong` when a list has taken some tenths of a millisecond. */
  constructor(schemes: ReadonlyMap<string, AclScheme>, onLong: () => void) {
    this.#schemes = schemes
    this.#onLong = onLong
  }

  /** Returns the permissions that some identity has. The list must not change any more. */
  grantedTo(acl: readonly ACL[], identities: readonly Identity[]): number {
    const held = (acl as HeldList)[COMPILED]
    if (held?.schemes !== this.#schemes) return this.#compile(acl).grantedTo(identities)
    const known = held.known(identities)
    if (known !== undefined) return known
    this.entriesVisited += Math.ceil(acl.length / COMPARED_SHARE)
    return held.grantedTo(identities)
  }

  #compile(acl: readonly ACL[]): CompiledAcl {
    this.entriesVisited += acl.length
    if (acl.length >= LONG_LIST) this.#onLong()
    const compiled = new CompiledAcl(acl, this.#schemes)
    // Not enumerable: it is no part of the list's value.
    Reflect.defineProperty(acl, COMPILED, { value: compiled, configurable: true })
    return compiled
  }
}

function addEntry({ byId, patterns }: SchemeEntries, scheme: AclScheme, id: string, perms: number): void {
  if (scheme.matches === isEqualId) {
    byId.set(id, (byId.get(id) ?? 0) | perms)
    return
  }
  patterns.push({ perms, matches: scheme.matcherOf?.(id) ?? ((proved) => scheme.matches(proved, id)) })
}

import { ZooKeeperError } from '@zabra/client'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch } from '../harness/servers.ts'

/** Modules that a member loads first: one disturbs its disk, the other records its turns of 5 ms and more. */
const PRELOADS = [
  new URL('disk-faults-preload.mjs', import.meta.url),
  new URL('../../../bench/dist/busy-preload.js?least=5', import.meta.url),
]

/** The disks of the members of a soak, which the test makes full or slow. */
export class SoakDisks {
  readonly #folder = scratch('soak-disks')
  #wasFull = false

  /** Returns the environment in which a member starts. */
  environmentOf(id: number): Record<string, string> {
    const folder = this.#folderOf(id)
    mkdirSync(folder, { recursive: true })
    return { ZABRA_SOAK_DISK: folder, NODE_OPTIONS: PRELOADS.map((url) => `--import=${url.href}`).join(' ') }
  }

  set(id: number, state: 'full' | 'slow', is: boolean): void {
    if (state === 'full' && is) this.#wasFull = true
    const file = join(this.#folderOf(id), state)
    if (is) writeFileSync(file, '')
    else rmSync(file, { force: true })
  }

  /** Returns whether a write may be refused with this error: since a disk is full, or was until now. */
  mayRefuse(error: unknown): boolean {
    return this.#wasFull && ZooKeeperError.is(error, 'SYSTEM_ERROR')
  }

  /** Accepts no more refusals: writes were acknowledged since the last disk was full. */
  recovered(): void {
    this.#wasFull = false
  }

  #folderOf(id: number): string {
    return join(this.#folder, String(id))
  }
}

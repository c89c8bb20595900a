import { ttlOf } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ServerCore } from './core.ts'

/** Removes containers that are empty and nodes whose time to live is over (`ContainerManager`). */
export class Reaper {
  readonly #core: ServerCore
  #cancel: Cancel = () => {}

  constructor(core: ServerCore) {
    this.#core = core
  }

  start(): void {
    const { clock } = this.#core.ports
    this.#cancel = clock.after(
      this.#core.settings.containerCheckIntervalMs,
      'containers and time to live',
      () => {
        this.#core.turn(() => this.#remove([...this.candidates()], 0))
      },
    )
  }

  stop(): void {
    this.#cancel()
  }

  /** The nodes that would be removed now. */
  *candidates(): Generator<string> {
    const { tree } = this.#core
    for (const nodes of [tree.owners.containers, tree.owners.ttl]) {
      for (const node of nodes) if (this.#isDue(node)) yield tree.pathOf(node)
    }
  }

  #isDue(node: number): boolean {
    const { tree, settings, ports } = this.#core
    if (tree.childCount(node) > 0) return false
    const { owner, cversion, mtime } = tree.statOf(node)
    const age = ports.clock.wall() - mtime
    if (tree.owners.ttl.has(node)) return age > ttlOf(owner)
    const unused = settings.containerMaxNeverUsedMs
    return tree.owners.containers.has(node) && (cversion > 0 || (unused > 0 && age > unused))
  }

  /** Spreads the removals so that at most so many happen in a minute, and looks again before each. Then the timer starts anew. */
  #remove(paths: readonly string[], from: number): void {
    const { writes, settings, ports, tree } = this.#core
    const batch = Math.max(1, Math.floor(settings.containerMaxPerMinute / 60))
    for (const path of paths.slice(from, from + batch)) {
      const isDue = (): boolean => {
        const node = tree.find(path)
        return node !== -1 && this.#isDue(node)
      }
      if (isDue()) writes.deleteContainer?.(path, ports.clock.monotonic(), isDue)
    }
    if (from + batch >= paths.length) return this.start()
    this.#cancel = ports.clock.after(1000, 'more containers', () => {
      this.#core.turn(() => this.#remove(paths, from + batch))
    })
  }
}

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
        this.start()
      },
    )
  }

  stop(): void {
    this.#cancel()
  }

  /** The nodes that would be removed now. */
  *candidates(): Generator<string> {
    const { tree, settings, ports } = this.#core
    const now = ports.clock.wall()
    for (const node of tree.owners.containers) {
      if (tree.childCount(node) > 0) continue
      const stat = tree.statOf(node)
      const unused = settings.containerMaxNeverUsedMs
      if (stat.cversion > 0 || (unused > 0 && now - stat.mtime > unused)) yield tree.pathOf(node)
    }
    for (const node of tree.owners.ttl) {
      const stat = tree.statOf(node)
      if (tree.childCount(node) === 0 && now - stat.mtime > ttlOf(stat.owner)) yield tree.pathOf(node)
    }
  }

  /** Spreads the removals so that at most so many happen in a minute. */
  #remove(paths: readonly string[], from: number): void {
    const { pipeline, settings, ports } = this.#core
    const batch = Math.max(1, Math.floor(settings.containerMaxPerMinute / 60))
    for (const path of paths.slice(from, from + batch)) {
      if (!pipeline.deleteContainer(path, ports.clock.monotonic())) return
    }
    if (from + batch >= paths.length) return
    ports.clock.after(1000, 'more containers', () => this.#core.turn(() => this.#remove(paths, from + batch)))
  }
}

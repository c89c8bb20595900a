import { ttlOf } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ClientService } from './client-service.ts'

/** There may be very many, and few of them due. */
const LOOKED_AT_IN_A_TURN = 1000

/** Removes containers that are empty and nodes whose time to live is over (`ContainerManager`). */
export class ContainerManager {
  readonly #core: ClientService
  #cancel: Cancel = () => {}
  #stopped = false

  constructor(core: ClientService) {
    this.#core = core
  }

  start(): void {
    const { clock } = this.#core.ports
    this.#cancel = clock.after(
      this.#core.settings.containerCheckIntervalMs,
      'containers and time to live',
      () => {
        this.#core.runTurn(() => this.#look(this.#nodes(), []))
      },
    )
  }

  stop(): void {
    this.#stopped = true
    this.#cancel()
  }

  /** Those that may be removed; while they come and go, what comes is among them. */
  *#nodes(): Generator<number> {
    const { owners } = this.#core.tree
    yield* owners.containers
    yield* owners.ttl
  }

  /** Collects the paths of those that would be removed now. */
  #look(nodes: Iterator<number>, due: string[]): void {
    if (this.#stopped) return
    for (let i = 0; i < LOOKED_AT_IN_A_TURN; i++) {
      const { done, value: node } = nodes.next()
      if (done) return this.#remove(due, 0)
      if (this.#isDue(node)) due.push(this.#core.tree.pathOf(node))
    }
    this.#core.runLater(() => this.#look(nodes, due))
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
    const { pipeline: writes, settings, ports, tree } = this.#core
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
      this.#core.runTurn(() => this.#remove(paths, from + batch))
    })
  }
}

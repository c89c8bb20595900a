import { ttlOf } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ClientService } from './client-service.ts'

/** Containers and TTL nodes that are checked in one turn of the event loop. */
const CHECKED_PER_TURN = 1000

/** Deletes empty containers and expired TTL nodes, as `ContainerManager` of Apache ZooKeeper does. */
export class ContainerManager {
  readonly #service: ClientService
  #cancelTimer: Cancel = () => {}
  #isStopped = false

  constructor(service: ClientService) {
    this.#service = service
  }

  /** Starts the timer of the next check. */
  start(): void {
    const { settings, platform } = this.#service
    this.#cancelTimer = platform.clock.after(
      settings.containerCheckIntervalMs,
      'containers and time to live',
      () => this.#service.runTurn(() => this.#check(this.#candidates(), [])),
    )
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
  }

  /** Yields every container and TTL node, including those that are created meanwhile. */
  *#candidates(): Generator<number> {
    const { owners } = this.#service.tree
    yield* owners.containers
    yield* owners.ttl
  }

  /** Collects the paths of the nodes to delete, over several turns. */
  #check(candidates: Iterator<number>, duePaths: string[]): void {
    if (this.#isStopped) return
    for (let i = 0; i < CHECKED_PER_TURN; i++) {
      const { done, value: node } = candidates.next()
      if (done) return this.#deleteSome(duePaths, 0)
      if (this.#isDue(node)) duePaths.push(this.#service.tree.pathOf(node))
    }
    this.#service.runLater(() => this.#check(candidates, duePaths))
  }

  #isDue(node: number): boolean {
    const { tree, settings, platform } = this.#service
    if (tree.childCount(node) > 0) return false
    const { owner, cversion, mtime } = tree.statOf(node)
    const age = platform.clock.wall() - mtime
    if (tree.owners.ttl.has(node)) return age > ttlOf(owner)
    const maxNeverUsedMs = settings.containerMaxNeverUsedMs
    return tree.owners.containers.has(node) && (cversion > 0 || (maxNeverUsedMs > 0 && age > maxNeverUsedMs))
  }

  /** Deletes a second's share of `containerMaxPerMinute`, from index `from` on, each node only if it is still due. */
  #deleteSome(paths: readonly string[], from: number): void {
    const { pipeline, settings, platform, tree } = this.#service
    const count = Math.max(1, Math.floor(settings.containerMaxPerMinute / 60))
    for (const path of paths.slice(from, from + count)) {
      const isDue = (): boolean => {
        const node = tree.find(path)
        return node !== -1 && this.#isDue(node)
      }
      if (isDue()) pipeline.deleteContainer?.(path, isDue)
    }
    if (from + count >= paths.length) return this.start()
    this.#cancelTimer = platform.clock.after(1000, 'more containers', () =>
      this.#service.runTurn(() => this.#deleteSome(paths, from + count)),
    )
  }
}

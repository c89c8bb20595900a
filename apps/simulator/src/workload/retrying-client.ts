import { ErrorCode } from '@zabra/protocol'
import type { Operation, Request } from '../history/records.ts'
import { largeTreeRequests } from './large-tree.ts'
import type { SessionClient } from './session-client.ts'

/** Sends one request at a time and retries it until it is answered. Requires exclusive use of its client. */
export class RetryingClient {
  readonly #client: SessionClient
  #request: Request | undefined
  #settle: (operation: Operation) => void = () => {}

  constructor(client: SessionClient) {
    this.#client = client
    client.onAttached = () => this.#try()
    client.onEnd = (operation) => {
      if (operation.request !== this.#request) return
      if (operation.outcome !== 'answered') return this.#try()
      this.#request = undefined
      this.#settle(operation)
    }
  }

  request(request: Request): Promise<Operation> {
    return new Promise((resolve) => {
      this.#request = request
      this.#settle = resolve
      this.#try()
    })
  }

  #try(): void {
    if (this.#request !== undefined && this.#client.isAttached) this.#client.send(this.#request)
  }
}

/** Creates nodes that do not exist yet, in order, empty unless data is given. */
export async function createAll(
  asking: RetryingClient,
  nodes: readonly (string | readonly [path: string, data: string])[],
): Promise<void> {
  for (const node of nodes) {
    const [path, data] = typeof node === 'string' ? [node, ''] : node
    for (;;) {
      const { result } = await asking.request({ op: 'create', path, data, mode: 'persistent' })
      if (result.err === 0 || result.err === ErrorCode.NODEEXISTS) break
    }
  }
}

/** Creates the nodes of a large tree that do not exist yet. */
export async function createLargeTree(asking: RetryingClient): Promise<void> {
  for (const request of largeTreeRequests())
    for (;;) {
      const { result } = await asking.request(request)
      if (result.err === 0 || result.err === ErrorCode.NODEEXISTS) break
    }
}

/** Reads every node of a tree and its children. */
export async function readTree(asking: RetryingClient, path: string): Promise<void> {
  await asking.request({ op: 'get', path, watch: false })
  const { result } = await asking.request({ op: 'children', path, watch: false })
  for (const name of result.children ?? []) await readTree(asking, `${path}/${name}`)
}

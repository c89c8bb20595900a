import { nodeClock } from '@zabra/runtime/node'
import { startChild, temporaryFolder, type ChildProcess } from '@zabra/runtime/node/children'
import type { GivenServerSettings } from '@zabra/server'
import { withGiven } from '../given-settings.ts'
import type { Role, TestMember } from './test-member.ts'
import type { TestServerOptions } from './test-server.ts'

export interface ChildServerOptions {
  /** Runs each server in a process of its own. */
  readonly process: 'child'
  /** Settings, as for a server in the test's process. Functions cannot be sent to another process. */
  readonly settings?: GivenServerSettings | undefined
  /** Folder for the data; it should be empty. Without it the server uses a temporary folder that `close` removes. */
  readonly data?: string | undefined
}

/** A command from the test's process to the child process. */
export type ChildCommand =
  | { readonly do: 'start'; readonly options: TestServerOptions }
  | { readonly do: 'cut'; readonly ports: readonly number[] }
  | { readonly do: 'close' }

/** A message from the child process to the test's process. */
export type ChildEvent =
  | { readonly is: 'started'; readonly address: string }
  | { readonly is: 'acting'; readonly role: Role; readonly isServing: boolean }

/** How long a child process may take to shut down, in milliseconds. */
const CLOSE_MS = 30_000

/** A server in a process of its own, which a test can kill (SIGKILL) and stop (SIGSTOP). Its data is in files. */
export class ChildServer implements TestMember {
  address = ''
  readonly #options: ChildServerOptions
  #folder: { readonly path: string; remove(): Promise<void> } | undefined
  #child: ChildProcess | undefined
  #role: Role | undefined
  #serving = false
  #blockedPorts: readonly number[] = []

  /** Created by `startServer` and `startEnsemble` with `process: 'child'`. */
  constructor(options: ChildServerOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#role !== undefined
  }

  /** Returns the role that the child reported last. A paused child reports nothing. */
  get role(): Role | undefined {
    return this.#role
  }

  /** Returns whether the child serves clients, as it reported last. */
  get isServing(): boolean {
    return this.#serving
  }

  /** Rejects with the output of the child process when it exits before the server runs. */
  async start(): Promise<this> {
    if (this.#child !== undefined) return this
    const data = await this.#data()
    const clientPort = Number(this.address.split(':')[1] ?? 0)
    const settings = withGiven({ clientPort }, this.#options.settings)
    await new Promise<void>((resolve, reject) => {
      const child = startChild(program(), (message) => {
        const report = message as ChildEvent
        if (report.is === 'acting') {
          this.#role = report.role
          this.#serving = report.isServing
        } else {
          this.address = report.address
          resolve()
        }
      })
      this.#child = child
      child.send({ do: 'start', options: { settings, data } } satisfies ChildCommand)
      child.send({ do: 'cut', ports: this.#blockedPorts } satisfies ChildCommand)
      void child.ended.then((why) => {
        if (this.#child === child) this.#child = this.#role = undefined
        this.#serving = false
        reject(new Error(`The child process of the server ended: ${why}`))
      })
    })
    return this
  }

  async kill(): Promise<void> {
    const child = this.#child
    child?.signal('SIGKILL')
    await child?.ended
  }

  pause(): void {
    this.#child?.signal('SIGSTOP')
  }

  resume(): void {
    this.#child?.signal('SIGCONT')
  }

  blockPorts(ports: readonly number[]): void {
    this.#blockedPorts = ports
    this.#child?.send({ do: 'cut', ports } satisfies ChildCommand)
  }

  /** Shuts the server down. Kills a child process that has not exited after 30 seconds. */
  async close(): Promise<void> {
    this.resume()
    const child = this.#child
    if (child !== undefined) {
      child.send({ do: 'close' } satisfies ChildCommand)
      const cancel = nodeClock.after(CLOSE_MS, 'close of a child', () => child.signal('SIGKILL'))
      await child.ended
      cancel()
    }
    await this.#folder?.remove()
    this.#folder = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #data(): Promise<string> {
    if (this.#options.data !== undefined) return this.#options.data
    this.#folder ??= await temporaryFolder('zabra-test')
    return this.#folder.path
  }
}

/** Returns the built program: a child process cannot run the TypeScript sources. */
const program = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/child.js' : '../child.js', import.meta.url)

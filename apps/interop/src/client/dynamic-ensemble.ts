import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestId } from '@zabra/protocol'
import { fourLetterWord } from '../harness/client.ts'
import { freePort } from '../harness/ports.ts'
import { scratch, Server, type Kind } from '../harness/servers.ts'

export const superPassword = 'super:secret'

interface Member {
  readonly id: number
  readonly port: number
  /** Its line of the configuration, as for `reconfig`. */
  readonly line: string
}

/** An ensemble whose members can join and leave while it runs. Clients need `superPassword` for reconfig. */
export class DynamicEnsemble {
  readonly #kind: Kind
  readonly #enabled: boolean
  readonly #servers = new Map<number, Server>()
  readonly #members = new Map<number, Member>()

  private constructor(kind: Kind, enabled: boolean) {
    this.#kind = kind
    this.#enabled = enabled
  }

  /** Starts an ensemble of the servers 1 to 3. */
  static async start(kind: Kind, { enabled = true }: { enabled?: boolean } = {}): Promise<DynamicEnsemble> {
    const ensemble = new DynamicEnsemble(kind, enabled)
    for (const id of [1, 2, 3]) await ensemble.#reserve(id)
    await Promise.all([1, 2, 3].map((id) => ensemble.#launch(id)))
    return ensemble
  }

  /** Starts a server that is not a member yet and has the others in its configuration. */
  async startJoiner(id: number): Promise<void> {
    await this.#reserve(id)
    await this.#launch(id)
  }

  line(id: number): string {
    return this.#members.get(id)!.line
  }

  address(id: number): string {
    return `127.0.0.1:${this.#members.get(id)!.port}`
  }

  /** Returns the id of the leader. */
  async leader(): Promise<number> {
    for (const [id, { port }] of this.#members) {
      if ((await fourLetterWord(port, 'srvr')).includes('Mode: leader')) return id
    }
    throw new Error('Expected an ensemble with a leader, got one without')
  }

  async #reserve(id: number): Promise<void> {
    const port = await freePort()
    const line = `server.${id}=127.0.0.1:${await freePort()}:${await freePort()}:participant;127.0.0.1:${port}`
    this.#members.set(id, { id, port, line })
  }

  async #launch(id: number): Promise<void> {
    const dataDir = join(scratch(`dynamic-${id}`), 'data')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'myid'), `${id}\n`)
    const config: Record<string, string | number> = { tickTime: 500, initLimit: 20, syncLimit: 10 }
    config['reconfigEnabled'] = String(this.#enabled)
    config['standaloneEnabled'] = 'false'
    for (const { line } of this.#members.values()) {
      const [key = '', value = ''] = line.split('=')
      config[key] = value
    }
    const digest = digestId(superPassword)
    const javaFlags = [`-Dzookeeper.DigestAuthenticationProvider.superDigest=${digest}`]
    const { port } = this.#members.get(id)!
    this.#servers.set(id, await Server.start({ kind: this.#kind, dataDir, config, port, javaFlags }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers.values()) await server[Symbol.asyncDispose]()
  }
}

import type { ManualClock, MemoryDisk } from '@zabra/runtime'
import { FourLetterCommands, type RoleMetrics } from '../../admin/index.ts'
import type { Reconfigure } from '../../core/prepare/index.ts'
import type { SessionPasswords, SessionRegistry } from '../../core/sessions/index.ts'
import { Tree } from '../../core/tree/index.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import type { ClientChannel } from '../../connections/client-channel.ts'
import { acceptClient } from '../../connections/client-connection.ts'
import { ClientService } from '../../connections/client-service.ts'
import { diskWithFolder, ManualPlatform } from '@zabra/testkit'
import { RawClient, type HandshakeOptions } from '../../testing/test-server.ts'
import type { RequestPipeline, PipelineContext } from '../types.ts'

export interface PipelineFixtureOptions<W extends RequestPipeline> {
  readonly clock: ManualClock
  readonly sessions: SessionRegistry
  readonly createPipeline: (context: PipelineContext<ClientChannel>) => W
  readonly settings?: Partial<ServerSettings>
  readonly passwords?: SessionPasswords
  readonly tree?: Tree
  readonly serverId?: number
  readonly localSessions?: boolean
  readonly readOnly?: boolean
  readonly role?: RoleMetrics
  readonly reconfigure?: Reconfigure
  /** Runs the other servers too; by default, there are none. */
  readonly settle?: () => Promise<void>
}

/** The client service of one server in one role, on a network of its own. The test plays the other servers. */
export class PipelineFixture<W extends RequestPipeline = RequestPipeline> extends ManualPlatform {
  readonly tree: Tree
  readonly clientService: ClientService
  readonly pipeline: W
  readonly failures: unknown[] = []
  readonly #settle: (() => Promise<void>) | undefined
  #port = 0

  private constructor(options: PipelineFixtureOptions<W>, disk: MemoryDisk) {
    super(disk, options.clock)
    this.#settle = options.settle
    this.tree = options.tree ?? new Tree({ extendedTypes: false, digest: true })
    const settings = defaults({
      dataDir: '/data',
      tickTimeMs: 1000,
      serverId: options.serverId ?? 1,
      fourLetterWords: ['*'],
      ...options.settings,
    })
    let pipeline!: W
    this.clientService = new ClientService({
      settings,
      platform: this.platform(),
      tree: this.tree,
      sessions: options.sessions,
      createPipeline: (context) => (pipeline = options.createPipeline(context)),
      hasLocalSessions: options.localSessions ?? false,
      isReadOnly: options.readOnly ?? false,
      ...(options.passwords === undefined ? {} : { passwords: options.passwords }),
      ...(options.role === undefined ? {} : { role: options.role }),
      ...(options.reconfigure === undefined
        ? {}
        : { isReconfigEnabled: true, reconfigure: options.reconfigure }),
      onFailure: (error) => void this.failures.push(error),
    })
    this.clientService.commands = new FourLetterCommands(
      this.clientService,
      { snapshots: '/data', logs: '/data' },
      0,
      { traceMask: 306n },
    )
    this.pipeline = pipeline
  }

  static async open<W extends RequestPipeline>(
    options: PipelineFixtureOptions<W>,
  ): Promise<PipelineFixture<W>> {
    const fixture = new PipelineFixture(options, await diskWithFolder('/data'))
    const listener = await fixture.network.listen({ port: 0 }, (wire) =>
      fixture.clientService.runTurn(() => acceptClient(fixture.clientService, wire)),
    )
    fixture.#port = listener.address.port
    return fixture
  }

  /** Runs everything that needs no time to pass, of the other servers too. */
  override untilIdle(): Promise<void> {
    return this.#settle?.() ?? super.untilIdle()
  }

  /** Opens a connection, which sends a handshake if `options` are given. */
  async client(options?: HandshakeOptions): Promise<RawClient> {
    const connection = await this.network.connect({ host: '127.0.0.1', port: this.#port })
    const client = new RawClient(this, connection)
    if (options !== undefined) client.handshake(options)
    return client
  }

  /** Opens a connection with a session, once the server is idle. */
  async connect(options: HandshakeOptions = {}): Promise<RawClient> {
    const client = await this.client(options)
    await this.untilIdle()
    client.takeConnectResponse()
    return client
  }

  async command(word: string): Promise<string> {
    const client = await this.client()
    client.send(new TextEncoder().encode(word))
    await this.clock.untilIdle()
    return client.text
  }
}

import { MemoryDisk, MemoryNetwork, SeededRandom, silent, type ManualClock, type Ports } from '@zabra/runtime'
import { FourLetterWords, type RoleFigures } from '../../../admin/index.ts'
import type { Reconfigure } from '../../../core/prepare/index.ts'
import type { Sessions } from '../../../core/sessions/index.ts'
import { Tree } from '../../../core/tree/index.ts'
import { defaults, type ServerSettings } from '../../../settings/index.ts'
import type { ClientConnection } from '../../connection.ts'
import { ServerCore } from '../../core.ts'
import { RawClient, system, type Connecting } from '../../testdata/world.ts'
import type { Writes, WritesKit } from '../contract.ts'

export interface SideOptions<W extends Writes> {
  readonly clock: ManualClock
  readonly sessions: Sessions
  readonly writes: (kit: WritesKit<ClientConnection>) => W
  readonly settings?: Partial<ServerSettings>
  readonly tree?: Tree
  readonly serverId?: number
  readonly localSessions?: boolean
  readonly readOnly?: boolean
  readonly role?: RoleFigures
  readonly reconfigure?: Reconfigure
}

/** The client side of one server in one role, on a network of its own. Others decide when it hears of anything. */
export class Side<W extends Writes = Writes> {
  readonly clock: ManualClock
  readonly tree: Tree
  readonly core: ServerCore
  readonly writes: W
  readonly failures: unknown[] = []
  readonly #network: MemoryNetwork
  readonly #port: number

  private constructor(options: SideOptions<W>, network: MemoryNetwork, disk: MemoryDisk, port: number) {
    this.clock = options.clock
    this.#network = network
    this.#port = port
    this.tree = options.tree ?? new Tree({ extendedTypes: false, digest: true })
    const settings = defaults({
      dataDir: '/data',
      tickTimeMs: 1000,
      serverId: options.serverId ?? 1,
      fourLetterWords: ['*'],
      ...options.settings,
    })
    let writes!: W
    this.core = new ServerCore({
      settings,
      ports: portsOf(this.clock, network, disk),
      tree: this.tree,
      sessions: options.sessions,
      writes: (kit) => (writes = options.writes(kit)),
      localSessions: options.localSessions ?? false,
      readOnly: options.readOnly ?? false,
      ...(options.role === undefined ? {} : { role: options.role }),
      ...(options.reconfigure === undefined
        ? {}
        : { reconfigEnabled: true, reconfigure: options.reconfigure }),
      failed: (error) => void this.failures.push(error),
    })
    this.core.words = new FourLetterWords(this.core, { snapshots: '/data', logs: '/data' }, 0)
    this.writes = writes
  }

  static async open<W extends Writes>(options: SideOptions<W>): Promise<Side<W>> {
    const network = new MemoryNetwork(options.clock)
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    const listener = await network.listen({ port: 0 }, (wire) =>
      side.core.turn(() => side.core.accept(wire)),
    )
    const side = new Side(options, network, disk, listener.address.port)
    return side
  }

  /** A connection that has sent its handshake, or has said nothing yet. */
  async client(options?: Connecting): Promise<RawClient> {
    const connection = await this.#network.connect({ host: '127.0.0.1', port: this.#port })
    const client = new RawClient(this.clock, connection)
    if (options !== undefined) client.handshake(options)
    return client
  }

  async word(word: string): Promise<string> {
    const client = await this.client()
    client.send(new TextEncoder().encode(word))
    await this.clock.settle()
    return client.text
  }
}

function portsOf(clock: ManualClock, network: MemoryNetwork, disk: MemoryDisk): Ports {
  return {
    clock,
    network,
    disk,
    random: new SeededRandom(1),
    logger: silent,
    system,
  } as unknown as Ports
}

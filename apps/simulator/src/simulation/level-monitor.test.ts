import { defaults, parseConfiguration, type Server } from '@zabra/server/core'
import { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { describe, expect, it } from 'vitest'
import { LevelMonitor } from './level-monitor.ts'
import { DATA_DIR } from './settings.ts'

const FOLDER = `${DATA_DIR}/version-2`
const LEVEL_FILE = `${FOLDER}/zabra.level`
const ENSEMBLE = 'server.1=s1:2888:3888:participant'

/** Three servers of release 2 that do not run, and what a monitor reports of them. */
class Scene {
  readonly world = new SimulatedWorld(1)
  readonly servers: readonly SimulatedServer[]
  readonly violations: string[] = []
  readonly monitor: LevelMonitor

  constructor() {
    this.servers = [1, 2, 3].map((id) => {
      const server = new SimulatedServer(this.world, this.world.addHost(`s${id}`), id, defaults({}))
      server.featureLevel = 2
      return server
    })
    this.monitor = new LevelMonitor({
      world: this.world,
      servers: this.servers,
      members: new Set([1, 2, 3]),
      violate: (what) => void this.violations.push(what),
    })
  }

  server(id: number): SimulatedServer {
    return this.servers[id - 1]!
  }

  /** Puts levels on disks, which the monitor then sees. */
  async store(text: string, ...ids: readonly number[]): Promise<void> {
    const bytes = new TextEncoder().encode(`${text}\n`)
    for (const id of ids) this.server(id).host.disk.install(LEVEL_FILE, bytes)
    await this.pass(50)
  }

  serve(id: number, role: Server['role']): void {
    this.server(id).server = { role, serving: true } as Server
  }

  replaceDisk(id: number): void {
    this.server(id).replaceDisk({ path: '/data/x', text: '', ensemble: parseConfiguration(ENSEMBLE) })
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.now + ms)
  }
}

describe('the monitor of feature levels', () => {
  it('reports nothing of a level that is proposed, stored by all members and finalized', async () => {
    const scene = new Scene()
    for (const id of [1, 2, 3]) scene.serve(id, id === 1 ? 'leading' : 'following')
    await scene.store('0 proposed 2', 1)
    await scene.store('0 proposed 2', 2, 3)
    expect(scene.monitor.hasSettled).toBe(false)
    await scene.store('2', 1)
    scene.monitor.accepted(scene.server(1), 2, true)
    await scene.store('2', 2, 3)
    await scene.pass(10_000)
    expect(scene.violations).toEqual([])
    expect(scene.monitor.hasSettled).toBe(true)
    expect(scene.monitor.finalized).toBe(2)
  })

  it('reports a finalized level that goes back', async () => {
    const scene = new Scene()
    await scene.store('2', 1, 2, 3)
    await scene.store('1 proposed 2', 2)
    expect(scene.violations).toEqual([
      expect.stringContaining('s2 has finalized level 1 on its disk, and had 2'),
    ])
  })

  it('accepts that a disk which was replaced has none', async () => {
    const scene = new Scene()
    await scene.store('2', 1, 2, 3)
    scene.replaceDisk(2)
    await scene.pass(50)
    expect(scene.violations).toEqual([])
  })

  it('reports a level that is final before each member has stored it', async () => {
    const scene = new Scene()
    await scene.store('0 proposed 2', 1, 2)
    await scene.store('2', 1)
    expect(scene.violations).toEqual([
      expect.stringContaining('s1 has finalized level 2, and s3 has level 0'),
    ])
  })

  it('reports a level that a server stores and does not read, and one that no release of a member reads', async () => {
    const scene = new Scene()
    scene.server(3).featureLevel = 3
    await scene.pass(50)
    await scene.store('0 proposed 3', 2)
    expect(scene.violations).toEqual([
      expect.stringContaining('s2 of release 2 has written level 0 and 3 proposed'),
      expect.stringContaining('s2 took level 3, which no release of s1 reads'),
    ])
  })

  it('accepts a level that becomes durable when a lower release is installed already', async () => {
    const scene = new Scene()
    const { disk } = scene.server(2).host
    disk.makeFolder(FOLDER)
    disk.create(LEVEL_FILE).write(0, new TextEncoder().encode('0 proposed 2\n'))
    await scene.pass(50)
    scene.server(2).featureLevel = 1
    await scene.pass(50)
    disk.file(LEVEL_FILE)!.sync(disk.file(LEVEL_FILE)!.pending)
    disk.syncFolder(FOLDER)
    await scene.pass(50)
    expect(scene.violations).toEqual([])
    expect(scene.monitor.describe()).toContain('s2 level 0 and 2 proposed')
  })

  it('reports an answer that a level is final, which is not on the disk of the server', () => {
    const scene = new Scene()
    scene.monitor.accepted(scene.server(1), 2, false)
    expect(scene.violations).toEqual([])
    scene.monitor.accepted(scene.server(1), 2, true)
    expect(scene.violations).toEqual([
      expect.stringContaining('s1 answered that level 2 is final, and its disk has 0'),
    ])
  })

  it('reports a server that serves as a release below its disk', async () => {
    const scene = new Scene()
    await scene.store('0 proposed 2', 1, 2, 3)
    scene.server(2).featureLevel = 1
    await scene.pass(50)
    expect(scene.violations).toEqual([])
    scene.serve(2, 'following')
    await scene.pass(50)
    expect(scene.violations).toEqual([
      expect.stringContaining('s2 serves as release 1, and its disk has level 0 and 2 proposed'),
    ])
  })

  it('reports a leader below the finalized level at once, and another server after five seconds', async () => {
    const scene = new Scene()
    await scene.store('2', 1, 2, 3)
    for (const id of [2, 3]) scene.replaceDisk(id)
    scene.serve(2, 'leading')
    scene.serve(3, 'observing')
    await scene.pass(50)
    expect(scene.violations).toEqual([expect.stringContaining('s2 of release 2 is leading with level 0')])
    await scene.pass(4900)
    expect(scene.violations).toHaveLength(1)
    await scene.pass(100)
    expect(scene.violations).toEqual([
      expect.anything(),
      expect.stringContaining('s3 of release 2 is observing with level 0, and level 2 is finalized'),
    ])
  })
})

import { makeZxid, MAX_EPOCH } from '@zabra/protocol'
import { SeededRandom, silentLogger, type MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../../core/quorum/index.ts'
import { writeConfigurationNode } from '../../core/tree/index.ts'
import { readClusterId, takeSnapshot } from '../index.ts'
import { createTxn, FOLDER, newTree } from '../testing/log-fixture.ts'
import { compareStates, forceMembers, readMemberState, type MemberState } from './index.ts'

const LOCATION = { dataDir: '/data', dataLogDir: '/data' }
const LAST = makeZxid(5, 1)
const MEMBERS = [1, 2].map((id) => `server.${id}=zk${id}:2888:3888:participant`)
const OBSERVER = 'server.3=zk3:2888:3888:observer'
const KNOWN = parseConfiguration([...MEMBERS, OBSERVER].join('\n'))
const toolsOn = (disk: MemoryDisk) => ({
  disk,
  compression: nodeCompression,
  logger: silentLogger,
  random: new SeededRandom(1),
})
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = async (disk: MemoryDisk, path: string): Promise<string> =>
  new TextDecoder().decode(await disk.readFile(path))

interface Given {
  readonly accepted?: number
  readonly current?: number
  /** The text of the configuration node. */
  readonly node?: string
  /** Files beside `version-2`. */
  readonly files?: Readonly<Record<string, string>>
}

/** Returns the data of a stopped member, whose last transaction is of epoch 5. */
async function memberDisk({ accepted, current, node, files = {} }: Given = {}): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  const tree = newTree()
  const { header, txn } = createTxn(LAST)
  tree.apply(header, txn)
  if (node !== undefined) writeConfigurationNode(tree, bytes(node), LAST, 0)
  await takeSnapshot(tree, [[7n, 4000]], {
    disk,
    folder: FOLDER,
    compression: 'none',
    compressor: nodeCompression,
  })
  if (accepted !== undefined) disk.putFile(`${FOLDER}/acceptedEpoch`, bytes(String(accepted)))
  if (current !== undefined) disk.putFile(`${FOLDER}/currentEpoch`, bytes(String(current)))
  for (const [name, contents] of Object.entries(files)) disk.putFile(`/data/${name}`, bytes(contents))
  return disk
}

const stateOf = async (given: Given): Promise<MemberState> => {
  const disk = await memberDisk(given)
  return readMemberState(LOCATION, toolsOn(disk))
}

describe('the state of a stopped member', () => {
  it('has what its files say', async () => {
    expect(await stateOf({ accepted: 7, current: 6 })).toEqual({
      ...LOCATION,
      lastZxid: LAST,
      acceptedEpoch: 7,
      currentEpoch: 6,
      nodes: expect.any(Number),
      configuration: undefined,
    })
    expect(await stateOf({})).toMatchObject({ acceptedEpoch: undefined, currentEpoch: undefined })
  })

  it('names the members of the tree, else those of the newest stored configuration', async () => {
    const files = {
      'zoo.cfg.dynamic.0': OBSERVER,
      'zoo.cfg.dynamic.ff': MEMBERS[0]!,
      'zoo.cfg.dynamic.100': MEMBERS.join('\n'),
      'zoo.cfg.dynamic.next': OBSERVER,
      'zoo.cfg.dynamic.x': OBSERVER,
      'zoo.cfg.dynamic.200.old': OBSERVER,
      'old.zoo.cfg.dynamic.200': OBSERVER,
    }
    const idsOf = async (given: Given): Promise<number[]> => [
      ...((await stateOf(given)).configuration?.members.keys() ?? []),
    ]
    expect(await idsOf({ node: [MEMBERS[0]!, OBSERVER].join('\n'), files })).toEqual([1, 3])
    expect(await idsOf({ files })).toEqual([1, 2])
    // A client with all permissions has written to the node, or an operator to the file.
    for (const node of ['nonsense', 'server.1', ''])
      expect(await idsOf({ node, files }), node).toEqual([1, 2])
    expect(await idsOf({ files: { 'zoo.cfg.dynamic.100': 'nonsense' } })).toEqual([])
  })

  it('is that of no member where the folder has no data', async () => {
    const disk = await diskWithFolder(FOLDER)
    const read = readMemberState(LOCATION, toolsOn(disk))
    await expect(read).rejects.toThrow('Expected the data of a member, got none')
  })

  it('is compared by its epoch, that of its last transaction where the file is missing, and then by that transaction', async () => {
    const state = await stateOf({})
    const [earlier, later, longer] = [
      { ...state, currentEpoch: 4, lastZxid: LAST + 9 },
      { ...state, currentEpoch: 6, lastZxid: 1 },
      { ...state, lastZxid: LAST + 1 },
    ]
    expect([later, longer, state, earlier].toSorted(compareStates)).toEqual([earlier, state, longer, later])
  })
})

describe('a member that goes on alone', () => {
  it('has the members that are named, in an epoch that none can have accepted', async () => {
    for (const [given, epoch] of [
      [{ accepted: 9, current: 6 }, 11],
      [{ accepted: 6, current: 8 }, 10],
      [{ accepted: 4, current: 4 }, 7],
      [{}, 7],
    ] as const) {
      const disk = await memberDisk(given)
      const forced = await forceMembers(LOCATION, [3, 2], { ...toolsOn(disk), known: KNOWN })
      const to = makeZxid(epoch, 1)
      expect(forced).toMatchObject({ from: LAST, to, epoch, snapshot: `snapshot.${to.toString(16)}` })
      expect([...forced.configuration.members.keys()]).toEqual([3, 2])
      disk.powerCut()
      expect(await text(disk, `/data/zoo.cfg.dynamic.${to.toString(16)}`)).toBe(
        [MEMBERS[1], OBSERVER].join('\n'),
      )
      for (const name of ['acceptedEpoch', 'currentEpoch'])
        expect(await text(disk, `${FOLDER}/${name}`)).toBe(String(epoch))
      expect(await readMemberState(LOCATION, toolsOn(disk))).toMatchObject({
        lastZxid: to,
        currentEpoch: epoch,
      })
      expect((await readClusterId(disk, FOLDER)).generation).toBe(1)
    }
  })

  it('has the members that its data name where no others are given', async () => {
    const disk = await memberDisk({ node: MEMBERS.join('\n') })
    const { configuration } = await forceMembers(LOCATION, [1], toolsOn(disk))
    expect([...configuration.members.keys()]).toEqual([1])
    const unknown = await memberDisk()
    const before = unknown.paths()
    await expect(forceMembers(LOCATION, [1], toolsOn(unknown))).rejects.toThrow(
      'Expected the members of the ensemble in /zookeeper/config or zoo.cfg.dynamic.*, got none in /data. Name the zoo.cfg of this member with --config.',
    )
    expect(unknown.paths()).toEqual(before)
  })

  it('needs one that votes, and none that is unknown', async () => {
    const disk = await memberDisk()
    const before = disk.paths()
    const force = (...ids: readonly number[]) =>
      forceMembers(LOCATION, ids, { ...toolsOn(disk), known: KNOWN })
    await expect(force(3)).rejects.toThrow('Expected at least one participant, got observers')
    await expect(force()).rejects.toThrow('Expected at least one participant, got observers')
    await expect(force(1, 4)).rejects.toThrow(/Expected the ids of members, got 4 .*Name some of 1, 2, 3\.$/)
    expect(disk.paths()).toEqual(before)
  })

  it('needs an epoch that is left to lead', async () => {
    const force = async (accepted: number) => {
      const disk = await memberDisk({ accepted, current: 5 })
      return forceMembers(LOCATION, [1], { ...toolsOn(disk), known: KNOWN })
    }
    expect((await force(MAX_EPOCH - 3)).epoch).toBe(MAX_EPOCH - 1)
    await expect(force(MAX_EPOCH - 2)).rejects.toThrow(
      `Expected an epoch below ${MAX_EPOCH}, got ${MAX_EPOCH}`,
    )
  })
})

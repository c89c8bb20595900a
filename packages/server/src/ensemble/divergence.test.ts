import { makeZxid } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { PacketSplitter, PacketType } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const LEADER_PORT = 2003
const PROXY_PORT = 9
const CLOSED_PORT = 8

/** A proxy between member 1 and the leader: records the ACKEPOCHs of member 1, and can corrupt a snapshot. */
async function startProxy(ensemble: Ensemble): Promise<{ isCorrupting: boolean; ackEpochs: string[] }> {
  const state = { isCorrupting: false, ackEpochs: [] as string[] }
  await ensemble.network.listen({ port: PROXY_PORT }, (near) => {
    const early: Uint8Array[] = []
    let far: Connection | undefined
    let afterSnap = false
    const splitter = new PacketSplitter({
      maxData: 1 << 20,
      packet: (type, zxid, data) => {
        if (type !== PacketType.ackEpoch) return
        const epoch = new DataView(data!.buffer, data!.byteOffset).getInt32(0)
        state.ackEpochs.push(`${zxid.toString(16)} in ${epoch}`)
      },
    })
    near.setHandler({
      data: (chunk) => {
        splitter.push(chunk)
        if (far === undefined) early.push(chunk.slice())
        else far.write(chunk.slice())
      },
      drain() {},
      closed: () => far?.destroy(),
    })
    ensemble.network.connect({ host: 'x', port: LEADER_PORT }).then(
      (connection) => {
        far = connection
        connection.setHandler({
          data: (chunk) => {
            const bytes = chunk.slice()
            if (state.isCorrupting && afterSnap) bytes[0]! ^= 0x80
            afterSnap = bytes[3] === PacketType.snap && bytes.length === 28
            near.write(bytes)
          },
          drain() {},
          closed: () => near.destroy(),
        })
        for (const bytes of early) connection.write(bytes)
      },
      () => near.destroy(),
    )
  })
  return state
}

it('a member that requests a full sync still acknowledges epochs with the history of its disk', async () => {
  const ensemble = new Ensemble(3, { forceSnapshotSync: true })
  const proxy = await startProxy(ensemble)
  const hasDiverged = (): boolean => ensemble.lines.join('\n').includes('it will fetch all of it anew')
  let isRepaired = false
  ensemble.detour = (id, port) => {
    if (id !== 1 || port !== LEADER_PORT) return port
    return hasDiverged() && !isRepaired ? CLOSED_PORT : PROXY_PORT
  }
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  const client = await ensemble.client(3)
  client.create(1, '/a')
  await ensemble.until('the reply', () => client.frames.length > 0)
  await ensemble.member(1).stop()
  proxy.isCorrupting = true
  await ensemble.member(1).start()
  await ensemble.until('the divergence of member 1', hasDiverged)
  // A committed transaction may be durable on member 1, although the snapshot that it was sent was corrupt.
  const lastZxid = ensemble.server(1).stats().lastZxid
  proxy.isCorrupting = false
  proxy.ackEpochs.length = 0
  await ensemble.member(2).crash()
  await ensemble.member(3).crash()
  ensemble.member(3).settings = Object.freeze({ ...ensemble.member(3).settings, forceSnapshotSync: false })
  await ensemble.member(3).start()
  await ensemble.member(2).start()
  isRepaired = true
  await ensemble.allServe(60_000)
  expect([lastZxid, ensemble.leader]).toEqual([makeZxid(1, 2), 3])
  // It requests the full sync after its ACKEPOCH, without another election.
  expect(proxy.ackEpochs).toEqual(['100000002 in 1', '0 in -1'])
  expect(ensemble.lines.join('\n')).toContain('The data of the leader are on disk')
})

import { OpCode, writeReconfigRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const changing = { reconfigEnabled: true, skipAcl: true }

const line = (id: number, client: string): string =>
  `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:participant;${client}`

async function change(ensemble: Ensemble, client: RawClient, joining: string): Promise<void> {
  client.frames.length = 0
  client.ask(77, OpCode.reconfig, (w) =>
    writeReconfigRequest(w, {
      joiningServers: joining,
      leavingServers: null,
      newMembers: null,
      curConfigId: -1n,
    }),
  )
  await ensemble.until('the answer', () => client.frames.length > 0)
  expect(client.takeReceived()).toEqual(['77:0'])
}

const told = (ensemble: Ensemble, text: string): Promise<void> =>
  ensemble.until(text, () => ensemble.lines.some((one) => one.includes(text)))

const reach = (ensemble: Ensemble, port: number): Promise<'reached'> =>
  ensemble.network.connect({ host: 'x', port }).then((wire) => {
    wire.destroy()
    return 'reached' as const
  })

it.each([1, 3])('serves clients where a change of the configuration says, at member %i', async (id) => {
  const ensemble = await Ensemble.start(3, changing)
  const [stays, asks] = [await ensemble.client(id), await ensemble.client(2)]
  await change(ensemble, asks, line(id, `4${id}01`))
  await told(ensemble, 'The client port has moved')
  await expect(reach(ensemble, 4000 + id)).rejects.toThrow('ECONNREFUSED')
  expect(await reach(ensemble, 4001 + id * 100)).toBe('reached')
  expect(ensemble.server(id).addresses.client.port).toBe(4001 + id * 100)
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  // Whoever is connected to a follower stays so; the leader that moves has to be elected again, as with its other ports.
  if (id === 1) {
    stays.frames.length = 0
    stays.create(1, '/a')
    await ensemble.until('the answer', () => stays.frames.length > 0)
    expect(stays.takeReceived()).toEqual(['1:0'])
  }
})

it('serves them there after a restart too', async () => {
  const ensemble = await Ensemble.start(3, changing)
  await change(ensemble, await ensemble.client(2), line(1, '127.0.0.1:4501'))
  await told(ensemble, 'The client port has moved')
  await ensemble.member(1).crash()
  await ensemble.member(1).start()
  expect(ensemble.server(1).addresses.client).toMatchObject({ port: 4501 })
})

it('goes on where it is while the new port cannot be had, and opens one again that differs in its host alone', async () => {
  const ensemble = await Ensemble.start(3, changing)
  const taken = await ensemble.network.listen({ port: 4601 }, () => {})
  const client = await ensemble.client(2)
  await change(ensemble, client, line(1, '4601'))
  await told(ensemble, 'The client port cannot move')
  expect(await reach(ensemble, 4001)).toBe('reached')
  await taken.close()
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  await change(ensemble, await ensemble.client(2), line(1, '127.0.0.1:4001'))
  await told(ensemble, 'The client port has moved')
  expect(await reach(ensemble, 4001)).toBe('reached')
})

it('stays where its settings say while changes concern others', async () => {
  const ensemble = await Ensemble.start(3, changing)
  const asks = await ensemble.client(2)
  await change(ensemble, asks, line(1, '4001'))
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  expect(ensemble.lines.filter((one) => one.includes('client port'))).toEqual([])
  expect(ensemble.server(3).addresses.client.port).toBe(4003)
})

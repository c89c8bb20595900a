import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const reconfigurable = { reconfigEnabled: true, skipAcl: true }

const memberLine = (id: number, client: string): string =>
  `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:participant;${client}`

const untilLogged = (ensemble: Ensemble, text: string): Promise<void> =>
  ensemble.until(text, () => ensemble.lines.some((one) => one.includes(text)))

const connectTo = (ensemble: Ensemble, port: number): Promise<'connected'> =>
  ensemble.network.connect({ host: 'x', port }).then((wire) => {
    wire.destroy()
    return 'connected' as const
  })

it.each([1, 3])('member %i serves clients on the client port that a reconfig gives it', async (id) => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  const [client, operator] = [await ensemble.client(id), await ensemble.client(2)]
  expect(await ensemble.reconfigure(operator, { joining: memberLine(id, `4${id}01`) })).toBe('77:0')
  await untilLogged(ensemble, 'The client port has moved')
  await expect(connectTo(ensemble, 4000 + id)).rejects.toThrow('ECONNREFUSED')
  expect(await connectTo(ensemble, 4001 + id * 100)).toBe('connected')
  expect(ensemble.server(id).addresses.client.port).toBe(4001 + id * 100)
  await ensemble.allServe()
  // Connections to a follower stay open. A leader that moves is elected again, as when its other ports move.
  if (id === 1) {
    client.frames.length = 0
    expect(await ensemble.create(client, '/a')).toBe('1:0')
  }
})

it('a member serves clients on the port of the reconfig after a restart', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  expect(
    await ensemble.reconfigure(await ensemble.client(2), { joining: memberLine(1, '127.0.0.1:4501') }),
  ).toBe('77:0')
  await untilLogged(ensemble, 'The client port has moved')
  await ensemble.member(1).crash()
  await ensemble.member(1).start()
  expect(ensemble.server(1).addresses.client).toMatchObject({ port: 4501 })
})

it('a member keeps its client port while the new one cannot be bound, and rebinds a port whose host alone has changed', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  const taken = await ensemble.network.listen({ port: 4601 }, () => {})
  const client = await ensemble.client(2)
  expect(await ensemble.reconfigure(client, { joining: memberLine(1, '4601') })).toBe('77:0')
  await untilLogged(ensemble, 'The client port cannot move')
  expect(await connectTo(ensemble, 4001)).toBe('connected')
  await taken.close()
  await ensemble.allServe()
  expect(
    await ensemble.reconfigure(await ensemble.client(2), { joining: memberLine(1, '127.0.0.1:4001') }),
  ).toBe('77:0')
  await untilLogged(ensemble, 'The client port has moved')
  expect(await connectTo(ensemble, 4001)).toBe('connected')
})

it('a member keeps the client port of its settings when a reconfig changes other members', async () => {
  const ensemble = await Ensemble.start(3, reconfigurable)
  const operator = await ensemble.client(2)
  expect(await ensemble.reconfigure(operator, { joining: memberLine(1, '4001') })).toBe('77:0')
  await ensemble.allServe()
  expect(ensemble.lines.filter((one) => one.includes('client port'))).toEqual([])
  expect(ensemble.server(3).addresses.client.port).toBe(4003)
})

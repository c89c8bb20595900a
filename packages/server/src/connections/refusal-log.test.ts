import { ManualClock, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { TestServer } from '../testing/test-server.ts'
import { RefusalLog } from './refusal-log.ts'

function start(): { clock: ManualClock; log: RefusalLog; lines: unknown[] } {
  const [clock, lines] = [new ManualClock(), [] as unknown[]]
  const info = ({ id, ...context }: { id?: string }, reason: string): void => {
    expect(id).toBe('client.closed')
    lines.push([reason, context])
  }
  return { clock, log: new RefusalLog({ clock, logger: { ...silentLogger, info } }), lines }
}

describe('RefusalLog', () => {
  it('logs a reason once for each address in ten seconds, whatever its numbers, then how often it occurred meanwhile', () => {
    const { clock, log, lines } = start()
    for (const [i, host] of ['a', 'a', 'b', 'a'].entries()) log.note(host, { i }, `Closed: ${i} of 0x${i}f`)
    log.note('a', {}, 'Closed: another reason')
    const first = [
      ['Closed: 0 of 0x0f', { i: 0 }],
      ['Closed: 2 of 0x2f', { i: 2 }],
      ['Closed: another reason', {}],
    ]
    expect(lines).toEqual(first)
    clock.advance(10_000)
    expect(lines).toEqual([...first, ['Closed: 0 of 0x0f', { i: 3, times: 2 }]])
    log.note('b', { i: 9 }, 'Closed: 9 of 0x9f')
    log.note('a', {}, 'Closed: 9 of 0x9f')
    expect(lines.slice(4)).toEqual([['Closed: 9 of 0x9f', { i: 9 }]])
    clock.advance(20_000)
    expect([lines.length, clock.pendingTimers()]).toEqual([6, []])
  })

  it('logs a reason once for the addresses of one IPv6 network', () => {
    const { log, lines } = start()
    for (let i = 1; i < 100; i++) log.note(`2001:db8:0:0:0:0:0:${i.toString(16)}`, { i }, 'Closed')
    log.note('2001:db8:0:1:0:0:0:1', { i: 100 }, 'Closed')
    expect(lines).toEqual([
      ['Closed', { i: 1 }],
      ['Closed', { i: 100 }],
    ])
  })

  it('logs a reason once, whatever texts and addresses a client has put into it', () => {
    const { log, lines } = start()
    for (let i = 0; i < 100; i++) {
      const text = 'x'.repeat(i)
      log.note(
        'a',
        { i },
        `Refused: it comes from ${JSON.stringify(`"${text}\\`)}, to ${JSON.stringify(text)}`,
      )
      log.note('a', { i }, `2001:db8::${(i + 16).toString(16)}:ab port ${i} is refused`)
    }
    expect(lines).toEqual([
      ['Refused: it comes from "\\"\\\\", to ""', { i: 0 }],
      ['2001:db8::10:ab port 0 is refused', { i: 0 }],
    ])
  })

  it('logs a burst of lines of a kind in ten seconds, and then one line with their number', () => {
    const { clock, log, lines } = start()
    const connect = (i: number): void => log.note('a', { i }, 'A session is connected', 'connected', 3)
    for (let i = 1; i <= 5; i++) connect(i)
    expect(lines).toEqual([1, 2, 3].map((i) => ['A session is connected', { i }]))
    clock.advance(10_000)
    for (let i = 6; i <= 9; i++) connect(i)
    expect(lines.slice(3)).toEqual([['A session is connected', { i: 5, times: 2 }]])
    clock.advance(20_000)
    expect(lines.slice(4)).toEqual([['A session is connected', { i: 9, times: 4 }]])
    connect(10)
    expect(lines.slice(5)).toEqual([['A session is connected', { i: 10 }]])
  })

  it('logs one line for all further addresses together', () => {
    const { log, lines, clock } = start()
    for (let i = 0; i < 5000; i++) log.note(`host ${i}`, { i }, 'Closed')
    expect(lines).toHaveLength(1001)
    expect(clock.pendingTimers()).toHaveLength(1001)
    clock.advance(10_000)
    expect(lines.slice(1001)).toEqual([['Closed', { i: 4999, times: 3999 }]])
  })
})

describe('the log of a server', () => {
  it('has one line for many connections that a client closes, and one with their number', async () => {
    const fixture = await TestServer.start()
    for (let i = 0; i < 30; i++) {
      const client = await fixture.connect()
      client.connection.destroy()
      await fixture.untilIdle()
    }
    const lines = (): object[] =>
      fixture.logLines.filter(({ level, sentence }) => level === 'info' && sentence.startsWith('Closed'))
    expect(lines()).toMatchObject([{ sentence: 'Closed by its client' }])
    await fixture.advance(10_000)
    expect(lines().slice(1)).toMatchObject([{ sentence: 'Closed by its client', facts: { times: 29 } }])
  })

  it.each([
    ['HTTP', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['HTTP', 'OPTIONS * HTTP/1.1\r\n\r\n'],
    ['WebSocket', 'GET /zabra HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01'],
  ])('names %s on a client port', async (name, bytes) => {
    const fixture = await TestServer.start()
    const client = await fixture.open()
    client.connection.write(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)))
    await fixture.untilIdle()
    expect(fixture.logLines.at(-1)).toMatchObject({
      level: 'info',
      sentence: `Closed: its first bytes are ${name}, and this port serves clients of ZooKeeper`,
    })
    expect(client.closed).toBe(true)
  })
})

it('sessions that one address opens without end are logged a hundred times in ten seconds', async () => {
  const fixture = await TestServer.start({ maxClientCnxns: 0 })
  for (let i = 0; i < 130; i++) (await fixture.client()).connection.destroy()
  const lines = (): number =>
    fixture.logLines.filter(({ sentence }) => sentence === 'A session is connected').length
  expect(lines()).toBe(100)
  await fixture.advance(10_000)
  expect(lines()).toBe(101)
})

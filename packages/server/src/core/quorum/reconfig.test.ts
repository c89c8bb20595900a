import { describe, expect, it } from 'vitest'
import { parseConfiguration, printConfiguration } from './index.ts'
import { applyReconfig, ReconfigurationError, type ReconfigRequest } from './reconfig.ts'

const line = (id: number, rest = ''): string => `server.${id}=h${id}:2888:3888${rest};2181`
const three = parseConfiguration([line(1), line(2), line(3), 'version=5'].join('\n'))
const nothing: ReconfigRequest = { joiningServers: null, leavingServers: null, newMembers: null }
const after = (change: Partial<ReconfigRequest>, from = three, minVoters = 2): string =>
  printConfiguration(applyReconfig(from, { ...nothing, ...change }, { version: 0x10000000b, minVoters }))

describe('applyReconfig', () => {
  it('removes leaving servers, adds joining ones and replaces the line of a present one', () => {
    expect(
      after({ leavingServers: '1, 9', joiningServers: `${line(4)},${line(2, ':observer')},${line(0)}` }),
    ).toBe(
      [
        'server.0=h0:2888:3888:participant;0.0.0.0:2181',
        'server.2=h2:2888:3888:observer;0.0.0.0:2181',
        'server.3=h3:2888:3888:participant;0.0.0.0:2181',
        'server.4=h4:2888:3888:participant;0.0.0.0:2181',
        'version=10000000b',
      ].join('\n'),
    )
  })

  it('takes ids of several digits, and spaces around lines', () => {
    expect(
      after({
        leavingServers: '12 , 3',
        joiningServers: ` ${line(13)} , server.14 =h14:2888:3888;2181`,
      }).match(/server\.\d+/g),
    ).toEqual(['server.1', 'server.2', 'server.13', 'server.14'])
  })

  it('accepts one client port for all interfaces of several servers on one host', () => {
    const members = [1, 2].map((id) => `server.${id}=h:${id}888:${id}889;0.0.0.0:2181`)
    expect(after({ newMembers: members.join() })).toContain('server.2=h:2888:2889')
  })

  it.each([',', '\n', ' , ', '\r\n'])(
    'replaces the whole membership with newMembers separated by %j',
    (separator) => {
      expect(after({ newMembers: [line(7), line(8), 'group.1=7:8'].join(separator) })).toBe(
        [
          'server.7=h7:2888:3888:participant;0.0.0.0:2181',
          'server.8=h8:2888:3888:participant;0.0.0.0:2181',
          'group.1=7:8',
          'weight.7=1',
          'weight.8=1',
          'version=10000000b',
        ].join('\n'),
      )
    },
  )

  it.each<[Partial<ReconfigRequest>, RegExp]>([
    [{ leavingServers: '1,2' }, /at least 2 participants, got one with 1/],
    [{ leavingServers: '1x' }, /id of a leaving server, got "1x"/],
    [{ leavingServers: 'x1' }, /id of a leaving server, got "x1"/],
    [{ joiningServers: `x${line(4)}` }, /Expected server\.N=/],
    [{ joiningServers: 'server.4x=h4:2888:3888;2181' }, /Expected server\.N=/],
    [
      { newMembers: 'server.1=h1:2888:3888;c:2181,server.2=h2:2888:3888;c:2181' },
      /different addresses for all servers, got c:2181 for 1 and 2/,
    ],
    [{ leavingServers: 'x' }, /id of a leaving server, got "x"/],
    [{ joiningServers: 'nonsense' }, /Expected server\.N=/],
    [{ joiningServers: 'server.4=h4:2888' }, /expected host:quorumPort/],
    [{ joiningServers: 'server.4=h4:2888:3888' }, /three ports for server\.4/],
    [{ joiningServers: 'server.4=h3:2888:3889;2181' }, /h3:2888 for 3 and 4/],
    [{ newMembers: 'server.1=' }, /The new membership: line 1/],
    [{ newMembers: line(1, ':observer') }, /at least one participant/],
  ])('rejects %j', (change, message) => {
    expect(() => after(change)).toThrow(ReconfigurationError)
    expect(() => after(change)).toThrow(message)
  })

  it('rejects incremental changes of a configuration with groups', () => {
    const grouped = parseConfiguration([line(1), line(2), 'group.1=1:2'].join('\n'))
    expect(() => after({ leavingServers: '1' }, grouped, 1)).toThrow(
      /newMembers with the complete membership/,
    )
  })
})

import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { PeerAddresses } from './peer-addresses.ts'

/** Peer addresses with a resolver whose answers the test changes. */
class Fixture {
  readonly clock = new ManualClock()
  readonly names: Record<string, string[]>
  readonly asked: string[] = []
  readonly addresses: PeerAddresses

  constructor(hosts: readonly string[], names: Record<string, string[]> = {}, isEnabled = true) {
    this.names = names
    this.addresses = new PeerAddresses({
      network: {
        resolve: (name) => {
          this.asked.push(name)
          const found = this.names[name]
          return found === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(found)
        },
      },
      clock: this.clock,
      isEnabled,
      hostsOf: (id) => (id === 2 ? hosts : []),
      joinerHosts: () => hosts,
    })
  }

  refusal(host: string, id = 2, subject?: string): string | undefined | Promise<string | undefined> {
    const refusal = this.addresses.refusal(id, {
      remote: { host },
      peer: subject === undefined ? undefined : { subject, alternativeNames: [] },
    })
    return refusal instanceof Promise ? refusal.then((late) => late?.reason) : refusal?.reason
  }
}

describe('a connection that claims the id of a member', () => {
  it.each([
    ['10.0.0.2', '10.0.0.2'],
    ['10.0.0.2', '::ffff:10.0.0.2'],
    ['2001:db8:0:0::2', '2001:db8::2'],
    ['fe80::2', 'fe80::2%eth0'],
    ['127.0.0.2', '127.0.0.1'],
    ['localhost', '::1'],
    ['::1', '::ffff:127.0.0.1'],
  ])('is accepted at once from an address of the member: %s, from %s', (host, from) => {
    expect(new Fixture([host]).refusal(from)).toBeUndefined()
  })

  it('is refused at once from another address, with the setting that allows it', () => {
    const refused = new Fixture(['10.0.0.2', '10.0.0.3']).refusal('10.0.0.9')
    expect(refused).toMatch(/claims to be server 2.* 10.0.0.2, 10.0.0.3, and comes from 10.0.0.9/)
    expect(refused).toContain('quorumAddressCheck=false')
  })

  it('is accepted from any address when the check is off', () => {
    expect(new Fixture(['10.0.0.2'], {}, false).refusal('10.0.0.9')).toBeUndefined()
  })
})

describe('a connection of a server that no configuration names', () => {
  it('is accepted from an address of a member, where any program could act as that member', async () => {
    expect(new Fixture(['10.0.0.2']).refusal('10.0.0.2', 7)).toBeUndefined()
    expect(await new Fixture(['one.example'], { 'one.example': ['10.0.0.2'] }).refusal('10.0.0.2', 7)).toBe(
      undefined,
    )
  })

  it('is refused from elsewhere, with what to do', () => {
    const refused = new Fixture(['10.0.0.2']).refusal('10.0.0.9', 7)
    expect(refused).toMatch(/no configuration names server 7.* 10.0.0.9 is not an address of a member/)
    expect(refused).toMatch(/reconfig.*quorumJoinerHosts/)
  })

  it('is accepted from anywhere with a certificate that the members trust, and when the check is off', () => {
    expect(new Fixture(['10.0.0.2']).refusal('10.0.0.9', 7, 'CN=seven')).toBeUndefined()
    expect(new Fixture(['10.0.0.2'], {}, false).refusal('10.0.0.9', 7)).toBeUndefined()
  })

  it('takes no more memory for many ids than for one', async () => {
    const fixture = new Fixture(['one.example'], { 'one.example': ['10.0.0.2'] })
    for (let id = 100; id < 200; id++) await fixture.refusal('10.0.0.9', id)
    expect(fixture.asked).toEqual(['one.example'])
  })
})

describe('the name of a member', () => {
  it('is resolved when an address does not match, once for connections at the same time', async () => {
    const fixture = new Fixture(['zoo2'], { zoo2: ['10.0.0.2', '2001:DB8::2'] })
    const both = await Promise.all([fixture.refusal('10.0.0.2'), fixture.refusal('10.0.0.9')])
    expect(both).toEqual([undefined, expect.stringContaining('comes from 10.0.0.9')])
    expect(fixture.refusal('2001:db8::2')).toBeUndefined()
    expect(fixture.asked).toEqual(['zoo2'])
  })

  it('is resolved again after 10 s, when an address does not match', async () => {
    const fixture = new Fixture(['zoo2'], { zoo2: ['10.0.0.2'] })
    await fixture.refusal('10.0.0.2')
    fixture.names['zoo2'] = ['10.0.0.7']
    expect(fixture.refusal('10.0.0.7')).toContain('comes from 10.0.0.7')
    fixture.clock.advance(10_000)
    expect(fixture.refusal('10.0.0.2')).toBeUndefined()
    expect(await fixture.refusal('10.0.0.7')).toBeUndefined()
    expect(fixture.asked).toEqual(['zoo2', 'zoo2'])
  })

  it('that cannot be resolved any more keeps the addresses that it had', async () => {
    const fixture = new Fixture(['zoo2'], { zoo2: ['10.0.0.2'] })
    await fixture.refusal('10.0.0.2')
    delete fixture.names['zoo2']
    fixture.clock.advance(10_000)
    expect(await fixture.refusal('10.0.0.9')).toContain('comes from 10.0.0.9')
    expect(fixture.refusal('10.0.0.2')).toBeUndefined()
  })

  it('that cannot be resolved matches no address, and does not hide the others', async () => {
    const fixture = new Fixture(['gone', 'zoo2'], { zoo2: ['10.0.0.2'] })
    expect(await fixture.refusal('10.0.0.9')).toContain('gone, zoo2')
    expect(fixture.refusal('10.0.0.2')).toBeUndefined()
  })
})

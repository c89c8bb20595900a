import { ProtocolError } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeNotification,
  encodeNotification,
  NO_VALUE,
  notificationBytes,
  PeerState,
  type Notification,
} from './index.ts'

const bytes = (...hex: string[]): Uint8Array =>
  Uint8Array.from(hex.join('').replaceAll(' ', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
const hex = (payload: Uint8Array): string =>
  [...payload].map((byte) => byte.toString(16).padStart(2, '0')).join('')
const ascii = (text: string): string => hex(new TextEncoder().encode(text))

const noValue = '8000000000000000'
const members = [1, 2, 3].map((id) => `server.${id}=127.0.0.1:2720${id}:2730${id}:participant`)
const configuration = [...members, 'version=0'].join('\n')

/**
 * Captured from servers of 3.8 in their first round and then with their roles in epoch 1, and from a 3.9 leader of epoch 2.
 */
const captured = {
  looking: bytes(
    '00000000 0000000000000001 0000000000000000 0000000000000001 0000000000000000 00000002 0000008a',
    ascii(configuration),
  ),
  following: bytes(
    '00000001 0000000000000002 0000000000000000 0000000000000001 0000000000000001 00000002 0000008a',
    ascii(configuration),
  ),
  leadingFirst: bytes(
    '00000002 0000000000000002 0000000000000000 0000000000000001 0000000000000001 00000002 0000008a',
    ascii(configuration),
  ),
  leading: bytes(
    '00000002 0000000000000002 0000000100000006 0000000000000002 0000000000000002 00000002 0000008a',
    ascii(configuration),
  ),
}

describe('a notification', () => {
  it('of a server of 3.8 or 3.9 is decoded', () => {
    expect(decodeNotification(captured.looking)).toEqual({
      state: 'looking',
      vote: { leader: 1, zxid: 0, round: 1, epoch: 0 },
      version: 2,
      configuration,
    })
    const elected = { leader: 2, zxid: 0, round: 1, epoch: 1 }
    expect(decodeNotification(captured.following)).toMatchObject({ state: 'following', vote: elected })
    expect(decodeNotification(captured.leadingFirst)).toMatchObject({ state: 'leading', vote: elected })
    expect(decodeNotification(captured.leading)).toEqual({
      state: 'leading',
      vote: { leader: 2, zxid: 0x100000006, round: 2, epoch: 2 },
      version: 2,
      configuration,
    })
  })

  it('is encoded byte for byte as by those servers', () => {
    for (const payload of Object.values(captured)) {
      const { state, vote } = decodeNotification(payload)
      expect(hex(encodeNotification(state, vote, configuration))).toBe(hex(payload))
    }
  })

  it('of a looking observer contains no leader, zxid and epoch', () => {
    const payload = bytes('00000000', noValue, noValue, '0000000000000003', noValue, '00000002 00000000')
    const vote = { leader: NO_VALUE, zxid: NO_VALUE, round: 3, epoch: NO_VALUE }
    expect(decodeNotification(payload)).toEqual({ state: 'looking', vote, version: 2, configuration: '' })
    expect(hex(encodeNotification('looking', vote, ''))).toBe(hex(payload))
  })

  it('of a joining participant contains its zxid and epoch without a leader', () => {
    const payload = bytes(
      '00000000',
      noValue,
      '0000000100000006 0000000000000001 0000000000000001 00000002 00000000',
    )
    expect(decodeNotification(payload).vote).toEqual({
      leader: NO_VALUE,
      zxid: 0x100000006,
      round: 1,
      epoch: 1,
    })
  })

  it('of a server before 3.4 gets the epoch of its zxid', () => {
    const payload = bytes('00000002 0000000000000003 0000000500000001 0000000000000001')
    const vote = { leader: 3, zxid: 0x500000001, round: 1, epoch: 5 }
    expect(decodeNotification(payload)).toEqual({ state: 'leading', vote, version: 0 })
    const ofObserver = bytes('00000000', noValue, noValue, '0000000000000003')
    expect(decodeNotification(ofObserver).vote).toEqual({
      leader: NO_VALUE,
      zxid: NO_VALUE,
      round: 3,
      epoch: NO_VALUE,
    })
  })

  it('of 3.4.6 gets version 0, whatever its version field contains', () => {
    const payload = bytes(
      '00000001 0000000000000003 0000000500000001 0000000000000001 0000000000000004 00000001',
    )
    const vote = { leader: 3, zxid: 0x500000001, round: 1, epoch: 4 }
    expect(decodeNotification(payload)).toEqual({ state: 'following', vote, version: 0 })
  })

  it('of version 1 has no configuration', () => {
    const head = '00000003 0000000000000003 0000000000000000 0000000000000001 0000000000000000 00000001'
    for (const tail of ['00000000', '00000002 6162', 'ff'])
      expect(decodeNotification(bytes(head, tail))).toEqual({
        state: 'observing',
        vote: { leader: 3, zxid: 0, round: 1, epoch: 0 },
        version: 1,
      })
  })

  it('can have the zxid -1 of a server that does not trust its data', () => {
    const payload = bytes(
      '00000000 0000000000000001 ffffffffffffffff 0000000000000001 0000000000000000 00000002 00000000',
    )
    expect(decodeNotification(payload).vote.zxid).toBe(-1)
  })

  it('can have a round up to 2^52', () => {
    const withRound = (round: string): Uint8Array =>
      bytes('00000000 0000000000000001 0000000000000000', round)
    expect(decodeNotification(withRound('0010000000000000')).vote.round).toBe(2 ** 52)
    expect(() => decodeNotification(withRound('0010000000000001'))).toThrow(
      'got 4503599627370497 (reading a vote at offset 20)',
    )
  })

  const upToEpoch = '00000000 0000000000000001 0000000000000000 0000000000000001 0000000000000000'
  it.each([
    ['its configuration', `${upToEpoch} 00000002 00000003 616263`, 'a1b2', 47],
    ['an empty configuration', `${upToEpoch} 00000002 00000000`, 'a1b2', 44],
    ['a configuration of negative length', `${upToEpoch} 00000002 ffffffff`, 'a1b2', 44],
    ['its last byte in version 1', `${upToEpoch} 00000001 00000001 61`, 'a1b2', 47],
    ['its last byte before there were versions', upToEpoch.slice(0, -17), '', 28],
    ['its last byte when it is cut off', `${upToEpoch} 00000002 000000`, '', 43],
  ])('ends at %s, and a member extension may follow', (_, notification, extension, length) => {
    expect(notificationBytes(bytes(notification, extension))).toBe(length)
  })

  const start = '00000000 0000000000000001 0000000000000000 0000000000000001'
  it.each([
    ['nothing', ''],
    ['27 bytes', start.slice(0, -2)],
    ['32 bytes', `${start} 00000000`],
    ['36 bytes, as 3.4.0 to 3.4.5 send them', `${start} 0000000000000000`],
    ['39 bytes', `${start} 0000000000000000 000000`],
    ['version 2 without a configuration', `${start} 0000000000000000 00000002 0000`],
    ['a configuration of negative length', `${start} 0000000000000000 00000002 ffffffff`],
    ['a configuration longer than the message', `${start} 0000000000000000 00000002 00000003 6162`],
    ['an unknown state', `00000004${start.slice(8)} 0000000000000000 00000002 00000000`],
    ['a negative state', `ffffffff${start.slice(8)} 0000000000000000 00000002 00000000`],
    ['an epoch that is not exact as a number', `${start} 7fffffffffffffff 00000002 00000000`],
    ['a round that is not exact as a number', '00000000 0000000000000001 0000000000000000 7fffffffffffffff'],
    ['a zxid that is not exact as a number', '00000000 0000000000000001 7fffffffffffffff 0000000000000001'],
  ])('is rejected when it is %s', (_, payload) => {
    expect(() => decodeNotification(bytes(payload))).toThrow(ProtocolError)
  })

  it('is decoded to what was encoded', () => {
    const long = fc.oneof(fc.constantFrom(NO_VALUE, -1), fc.maxSafeNat())
    const anyNotification: fc.Arbitrary<Notification> = fc.record({
      state: fc.constantFrom(...(Object.keys(PeerState) as PeerState[])),
      vote: fc.record({ leader: long, zxid: long, round: fc.nat(2 ** 31 - 1), epoch: long }),
      version: fc.constant(2),
      configuration: fc.string({ maxLength: 300 }),
    })
    fc.assert(
      fc.property(anyNotification, (notification) => {
        const { state, vote } = notification
        expect(decodeNotification(encodeNotification(state, vote, notification.configuration!))).toEqual(
          notification,
        )
      }),
    )
  })

  it('of random bytes is decoded or rejected with a ProtocolError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (payload) => {
        try {
          decodeNotification(payload)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

const MULTIPLIER = 0x5deece66dn
const MASK = (1n << 48n) - 1n
const SECRET = 0xb3415c00n

/**
 * Returns the password of a session: 16 bytes derived from its id (client-protocol 2.5). They are the same on every server, Apache
 * ZooKeeper included, so that a client can reconnect to any. It protects from mistakes, not from attackers.
 */
export function passwordFor(sessionId: bigint): Uint8Array {
  const password = new Uint8Array(16)
  let state = (sessionId ^ SECRET ^ MULTIPLIER) & MASK
  for (let i = 0; i < 16; i += 4) {
    state = (state * MULTIPLIER + 0xbn) & MASK
    const value = Number((state >> 16n) & 0xffffffffn)
    for (let byte = 0; byte < 4; byte++) password[i + byte] = (value >>> (byte * 8)) & 0xff
  }
  return password
}

/** Whether a password is that of a session. Takes the same time for all wrong ones. */
export function isPasswordOf(sessionId: bigint, password: Uint8Array | null): boolean {
  if (sessionId === 0n || password === null || password.length !== 16) return false
  const expected = passwordFor(sessionId)
  let difference = 0
  for (let i = 0; i < 16; i++) difference |= expected[i]! ^ password[i]!
  return difference === 0
}

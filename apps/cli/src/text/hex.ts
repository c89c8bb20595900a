import { formatZxid } from '@zabra/protocol'

/** Returns a zxid, its counter or the id of a session in hexadecimal digits after 0x. */
export const hex = (id: bigint | number): string => `0x${formatZxid(id)}`

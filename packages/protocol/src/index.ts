/** The ZooKeeper protocol: records, codecs, tables. No I/O, no policy. */
export type * from './schema/records.ts'
export * from './gen/records.gen.ts'
export * from './handshake.ts'
export * from './multi.ts'
export { ProtocolError } from './wire/error.ts'
export { Reader } from './wire/reader.ts'
export { allocateBuffer, BufferPool, copyRange, type PooledBuffer } from './wire/buffers.ts'
export { Writer } from './wire/writer.ts'
export { FrameSplitter } from './wire/frames.ts'
export type { FrameSplitterOptions } from './wire/frames.ts'
export { readText, textByteLength, writeText } from './wire/text.ts'
export { OpCode, Xid } from './tables/op-codes.ts'
export { ErrorCode, errorName, errors } from './tables/errors.ts'
export type { ErrorInfo, ErrorName } from './tables/errors.ts'
export { EventType, KeeperState, WatcherType, WatchMode } from './tables/events.ts'
export * from './tables/create-modes.ts'
export * from './tables/acl.ts'
export { OPEN_ACL_BYTES } from './tables/open-acl.ts'
export { nameOf, parentOf, validatePath } from './tables/paths.ts'
export * from './tables/zxid.ts'
export { adler32 } from './tables/adler32.ts'
export { crc32, crc32Text } from './tables/crc32.ts'
export { DigestMd5Client, DigestMd5Server, nonceSource, SaslError } from './sasl/digest-md5.ts'
export type {
  DigestMd5ClientOptions,
  DigestMd5FailureReason,
  DigestMd5ServerOptions,
  DigestMd5Result,
  NonceSource,
  SaslClient,
} from './sasl/digest-md5.ts'
export { md5 } from './tables/md5.ts'
export { hmacSha256, sha256 } from './tables/sha256.ts'
export { sha1 } from './tables/sha1.ts'

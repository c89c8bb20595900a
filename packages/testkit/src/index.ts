/** What the tests of several packages share. */
export { syncCompression } from './compression.ts'
export { ForwardingConnection } from './forwarding-connection.ts'
export { FramedConnection, type FrameHandler, type Handshake } from './framed-connection.ts'
export { diskWithFolder, holdWrites } from './disk.ts'
export { freePorts } from './free-ports.ts'
export { fixedSystem, ManualPlatform } from './manual-platform.ts'
export { MemoryHttp, type TestRequest, type TextResponse } from './memory-http.ts'
export { RawClient, type Reply } from './raw-client.ts'

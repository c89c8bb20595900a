/** Diagnostics channels of the process. Publishing to a channel without subscribers costs nothing. */
export { channel, tracingChannel } from 'node:diagnostics_channel'

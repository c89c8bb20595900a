/** The channels on which a process tells whoever listens what it does; nobody pays while nobody does. */
export { channel, tracingChannel } from 'node:diagnostics_channel'

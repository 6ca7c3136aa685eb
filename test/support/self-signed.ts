/** A certificate for 127.0.0.1, made on the spot: for tests of what is only allowed over HTTPS. */

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

const DAY_MS = 24 * 60 * 60_000;
const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const BOOLEAN = 0x01;

/** `ecdsa-with-SHA256`, `commonName`, `subjectAltName`, `basicConstraints`, encoded. */
const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const SUBJECT_ALT_NAME = '551d11';
const BASIC_CONSTRAINTS = '551d13';

export interface SelfSigned {
  readonly certificatePem: string;
  readonly keyPem: string;
}

export function selfSignedForLoopback(): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const body = certificateBody(publicKey);
  const signature = Buffer.concat([Buffer.of(0), sign('sha256', body, privateKey)]);
  const certificate = der(SEQUENCE, body, algorithm(), der(BIT_STRING, signature));
  return {
    certificatePem: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----\n`,
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function certificateBody(publicKey: KeyObject): Buffer {
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, objectId(COMMON_NAME), der(UTF8_STRING, Buffer.from('test')))));
  const loopback = der(0x87, Buffer.of(127, 0, 0, 1));
  const extensions = der(
    SEQUENCE,
    der(SEQUENCE, objectId(SUBJECT_ALT_NAME), der(OCTET_STRING, der(SEQUENCE, loopback))),
    der(SEQUENCE, objectId(BASIC_CONSTRAINTS), der(OCTET_STRING, der(SEQUENCE, der(BOOLEAN, Buffer.of(0xff))))),
  );
  return der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.of(2))),
    der(INTEGER, Buffer.of(1)),
    algorithm(),
    name,
    der(SEQUENCE, utcTime(Date.now() - DAY_MS), utcTime(Date.now() + DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
}

function algorithm(): Buffer {
  return der(SEQUENCE, objectId(ECDSA_WITH_SHA256));
}

function objectId(hex: string): Buffer {
  return der(OBJECT_ID, Buffer.from(hex, 'hex'));
}

/** `YYMMDDhhmmssZ` */
function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const lengthBytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...lengthBytes), content]);
}
